"""The manifests of conf/kubernetes, and how the image of conf/container starts."""

import json
import re
import runpy
import shlex
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pyspark
import pytest
import yaml

from conftest import ROOT
from kafka_segments.cli import cli
from support.house.local_image import instructions

MANIFESTS = {
    path.stem: yaml.safe_load(path.read_text("utf-8"))
    for path in (ROOT / "conf" / "kubernetes").iterdir()
}
CONTAINER = ROOT / "conf" / "container"
BUILDS = ("build", "nightly-build")
# What docs/kubernetes.md says was held against the operator's own definitions.
OF_THE_OPERATOR = {
    *("arguments", "driver", "executor", "image", "mainApplicationFile", "mode", "pythonVersion"),
    *("restartPolicy", "sparkVersion", "type", "volumes"),
}
OF_ITS_PODS = {"cores", "instances", "memory", "securityContext", "serviceAccount", "volumeMounts"}


def _application(name: str) -> dict[str, Any]:
    spec = MANIFESTS[name]["spec"]
    return spec if name == "build" else spec["template"]


KIT = MANIFESTS["recovery-kit"]["spec"]["template"]["spec"]
TRIAGE = MANIFESTS["triage"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def _containers() -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Give every container, with the volumes that its manifest has."""
    yield KIT["initContainers"][0], KIT["volumes"]
    yield TRIAGE["containers"][0], TRIAGE["volumes"]
    for name in BUILDS:
        application = _application(name)
        for part in ("driver", "executor"):
            yield application[part], application["volumes"]


def test_each_manifest_has_the_kind_that_the_docs_name() -> None:
    assert {name: (found["apiVersion"], found["kind"]) for name, found in MANIFESTS.items()} == {
        "recovery-kit": ("apps/v1", "StatefulSet"),
        "triage": ("batch/v1", "CronJob"),
        "build": ("sparkoperator.k8s.io/v1beta2", "SparkApplication"),
        "nightly-build": ("sparkoperator.k8s.io/v1beta2", "ScheduledSparkApplication"),
    }


def test_the_client_that_spark_has_knows_every_field(tmp_path: Path) -> None:
    pieces = [
        ("apps.StatefulSet", MANIFESTS["recovery-kit"]),
        ("batch.v1.CronJob", MANIFESTS["triage"]),
        ("apps.StatefulSet", {"spec": {"template": {"spec": {"noSuch": 1}}}}),
    ]
    for name in BUILDS:
        application = _application(name)
        pieces += [("Volume", volume) for volume in application["volumes"]]
        for part in ("driver", "executor"):
            pieces.append(("SecurityContext", application[part]["securityContext"]))
            pieces += [("VolumeMount", mount) for mount in application[part]["volumeMounts"]]
    words = []
    for number, (model, piece) in enumerate(pieces):
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(piece))
        words += [model, str(file)]
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    source = ROOT / "tests" / "kubernetes" / "KnownFields.java"

    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", jars, source, *words],
        capture_output=True,
        text=True,
        check=True,
    )

    assert re.fullmatch(r'apps.StatefulSet: Unrecognized field "noSuch" .*\n', done.stdout)


@pytest.mark.parametrize("name", BUILDS)
def test_the_applications_have_fields_that_the_operator_knows(name: str) -> None:
    application = _application(name)

    assert set(application) == OF_THE_OPERATOR
    assert set(application["driver"]) | set(application["executor"]) == OF_ITS_PODS


def test_the_nightly_build_is_the_build() -> None:
    assert _application("nightly-build") == _application("build")


def test_no_container_may_write_to_its_root_or_run_as_root() -> None:
    for container, volumes in _containers():
        context = container["securityContext"]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}

        assert context["readOnlyRootFilesystem"]
        assert context["runAsNonRoot"]
        assert context["runAsUser"]
        assert not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        empty = {volume["name"] for volume in volumes if volume.get("emptyDir") == {}}
        assert [mounts[name] for name in mounts if name in empty] == ["/tmp"]


def test_each_volume_that_is_mounted_is_there() -> None:
    of_the_broker = {"data-0", "data-1"}  # claim templates of the StatefulSet
    for container, volumes in _containers():
        known = {volume["name"] for volume in volumes} | of_the_broker

        assert {mount["name"] for mount in container["volumeMounts"]} <= known


def test_the_verbs_parse_what_the_manifests_give_them(tmp_path: Path) -> None:
    (script,) = KIT["initContainers"][0]["args"]
    lines = re.findall(r"kafka-segments (.*)$", script, re.MULTILINE)
    in_shell = [shlex.split(line) for line in lines]

    assert [words[:2] for words in in_shell] == [["recovery", "kit"], ["recovery", "apply"]]
    for words in (
        TRIAGE["containers"][0]["args"],
        ["build", *_application("build")["arguments"]],
        *in_shell,
    ):
        command: click.Command = cli
        rest = [word.replace("$kit", str(tmp_path)) for word in words]
        while isinstance(command, click.Group):
            command = command.commands[rest.pop(0)]
        command.make_context(command.name, rest)


def test_the_jobs_that_are_named_are_in_the_image() -> None:
    place = "local:///opt/kafka-segments/jobs/"
    names = {_application(name)["mainApplicationFile"].removeprefix(place) for name in BUILDS}
    copied = [rest for word, rest in instructions((CONTAINER / "Containerfile").read_text("utf-8"))]

    assert "jobs /opt/kafka-segments/jobs/" in copied
    assert names == {"build_indexes.py"}
    assert (ROOT / "jobs" / "build_indexes.py").exists()


def test_the_images_run_as_another_user_than_root_and_name_no_registry() -> None:
    found = instructions((CONTAINER / "Containerfile").read_text("utf-8"))

    assert [rest for word, rest in found if word == "USER"] == ["10001:10001", "0:0", "10001:10001"]
    assert [rest for word, rest in found if word == "ARG"] == ["PYTHON_IMAGE=python:3.12-slim"]
    assert all("." not in name.partition("/")[0] for name in _images() if "/" in name)


def _images() -> Iterator[str]:
    for container, _ in _containers():
        if "image" in container:
            yield container["image"]
    for name in BUILDS:
        yield _application(name)["image"]


@pytest.fixture(scope="module")
def command() -> Callable[..., list[str]]:
    return runpy.run_path(str(CONTAINER / "start.py"))["command"]


def test_a_pod_of_spark_is_started_with_what_spark_gave_it(
    command: Callable[..., list[str]],
) -> None:
    variables = {
        "SPARK_HOME": "/opt/spark",
        "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.1",
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
        "SPARK_EXECUTOR_ID": "3",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_APPLICATION_ID": "spark-1",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_EXECUTOR_POD_NAME": "pod-3",
        "SPARK_EXECUTOR_MEMORY": "4g",
        **{f"SPARK_JAVA_OPT_{number}": f"-Dnumber={number}" for number in range(11)},
    }

    assert all(_of_spark(name) for name in variables if not name.startswith("SPARK_HOME"))
    driver = command(["driver", "--properties-file", "p", "job.py", "a b"], variables)
    executor = command(["executor"], variables)

    assert driver[:5] == [
        *("/opt/spark/bin/spark-submit", "--conf", "spark.driver.bindAddress=10.0.0.1"),
        *("--deploy-mode", "client"),
    ]
    assert driver[5:] == ["--properties-file", "p", "job.py", "a b"]
    assert executor[1:12] == [f"-Dnumber={number}" for number in range(11)]
    assert executor[12:14] == ["-Xms4g", "-Xmx4g"]
    assert "--podName pod-3" in " ".join(executor)
    assert all(_of_spark(word) for word in executor if word.startswith("--"))
    assert command(["triage", "/data"], {}) == ["kafka-segments", "triage", "/data"]


def _of_spark(word: str) -> bool:
    """Tell whether Spark on Kubernetes has a variable, or its executor an option."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-kubernetes_*.jar")
    with zipfile.ZipFile(jar) as classes:
        return any(
            word.rstrip("0123456789").encode() in classes.read(name)
            for name in classes.namelist()
            if re.search(r"k8s/(Constants|KubernetesExecutorBackend)\b", name)
        )
