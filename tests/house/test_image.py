"""The image of conf/container: its steps run here, its containers as another user, read-only."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
import yaml

from conftest import ROOT
from support.house.installed_package import build_wheel
from support.house.local_image import LocalImage, build_images, require_local_images
from support.verbs.recovery_kits import crashed_log

pytestmark = pytest.mark.long  # packages are installed, and all is compiled anew
CASE = "v2-txn-interleaved-multi-segment"
USER = 23_456
KIT = yaml.safe_load((ROOT / "conf" / "kubernetes" / "recovery-kit.yaml").read_text("utf-8"))


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, LocalImage]]:
    require_local_images()
    folder = Path(mkdtemp(dir="/var/tmp"))  # an overlay's changes take gigabytes
    folder.chmod(0o755)
    context = tmp_path_factory.mktemp("context")
    build_wheel(context / "dist")
    for name in ("conf", "jars", "jobs", "requirements.lock", "tests"):
        (context / name).symlink_to(ROOT / name)
    try:
        yield build_images(ROOT / "conf" / "container" / "Containerfile", context, folder)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def volumes() -> Iterator[Path]:
    """A folder of volumes, ``tmp`` among them, which the user of the containers owns."""
    folder = Path(mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def _give(folder: Path, user: int) -> None:
    for one in (folder, *folder.rglob("*")):
        shutil.chown(one, user, user)


def _compiled(volumes: Path) -> list[str]:
    return sorted(path.name for path in volumes.glob("tmp/kafka-segments-compiled-*/**/*.nbc"))


@pytest.mark.parametrize("verb", ["triage", "records", "disk"])
def test_any_user_looks_at_directories_and_compiles_nothing(
    images: dict[str, LocalImage], volumes: Path, broker: Path, verb: str
) -> None:
    shutil.copytree(broker / "logs", volumes / "logs")
    _give(volumes / "logs", USER)
    mounted = {"/data": volumes / "logs", "/tmp": volumes / "tmp"}

    done = images["core"].run([verb, "/data"], mounted, user=f"{USER}:{USER}")

    assert done.returncode in (0, 1), done.stderr
    assert "txn" in done.stdout or verb != "disk"
    assert _compiled(volumes) == []


def test_nothing_of_the_image_can_be_written(images: dict[str, LocalImage], volumes: Path) -> None:
    script = "id -u; echo ${HOME-none}; touch /opt/kafka-segments/x /x"

    done = images["core"].run([script], {"/tmp": volumes / "tmp"}, command=["sh", "-c"])

    assert done.stdout == "10001\nnone\n"
    assert done.stderr.count("Read-only file system") == 2


@pytest.fixture
def disks(volumes: Path, synthetic: Path) -> list[Path]:
    """Two log directories of a crashed broker, which the other user owns."""
    logs = [volumes / f"data-{number}" / "logs" for number in range(2)]
    for log_dir in logs:
        crashed_log(log_dir, synthetic / CASE / "t-0", torn=bytes(100))
    return logs


def _init_container(image: LocalImage, volumes: Path) -> tuple[int, str, str, str]:
    """Run the init container; return its status, what it printed, and its termination message."""
    (container,) = KIT["spec"]["template"]["spec"]["initContainers"]
    for number in range(2):
        _give(volumes / f"data-{number}", USER)
    said = volumes / "tmp" / "termination-log"
    (script,) = container["args"]
    done = image.run(
        [script.replace("/dev/termination-log", "/tmp/termination-log")],
        {
            mount["mountPath"]: volumes / mount["name"].removeprefix("recovery-kit-")
            for mount in container["volumeMounts"]
        },
        user=f"{USER}:{USER}",
        command=container["command"],
    )
    return done.returncode, done.stdout, done.stderr, said.read_text() if said.exists() else ""


def _point(log_dir: Path) -> str:
    return (log_dir / "recovery-point-offset-checkpoint").read_text().splitlines()[3]


def test_the_init_container_makes_and_applies_a_kit_of_each_disk(
    images: dict[str, LocalImage], volumes: Path, disks: list[Path]
) -> None:
    status, printed, errors, said = _init_container(images["core"], volumes)

    assert (status, said) == (0, ""), errors
    assert printed.count("t-0: done") == 2, errors
    assert all(_point(log_dir) != "t 0 0" for log_dir in disks)
    assert _compiled(volumes) == []


def test_a_disk_without_a_kit_is_said_and_stops_nothing(
    images: dict[str, LocalImage], volumes: Path, disks: list[Path]
) -> None:
    (disks[0].parent / "kits").write_text("no folder")

    status, _, errors, said = _init_container(images["core"], volumes)

    assert status == 0
    assert said.startswith("NO KIT for /var/lib/kafka/data-0/logs (status ")
    assert said in errors
    assert (_point(disks[0]), _point(disks[1]) != "t 0 0") == ("t 0 0", True)


def test_after_a_clean_stop_nothing_is_read(
    images: dict[str, LocalImage], volumes: Path, disks: list[Path]
) -> None:
    for log_dir in disks:
        (log_dir / ".kafka_cleanshutdown").touch()

    assert _init_container(images["core"], volumes) == (0, "", "", "")


def test_the_driver_of_a_pod_builds_tables_and_compiles_nothing(
    images: dict[str, LocalImage], volumes: Path, broker: Path
) -> None:
    """As Spark starts it, but for the master: threads of the driver in the place of pods."""
    build = yaml.safe_load((ROOT / "conf" / "kubernetes" / "build.yaml").read_text("utf-8"))["spec"]
    shutil.copytree(broker / "logs", volumes / "snapshot" / "logs")
    for name in ("snapshot", "warehouse"):
        (volumes / name).mkdir(exist_ok=True)
        _give(volumes / name, 10_001)
    properties = volumes / "spark.properties"
    properties.write_text("spark.master local[2]\nspark.driver.host 127.0.0.1\n")
    properties.chmod(0o644)
    words = ["driver", "--properties-file", "/opt/spark/conf/spark.properties"]

    done = images["spark"].run(
        [*words, build["mainApplicationFile"], *build["arguments"]],
        {
            "/snapshot": volumes / "snapshot",
            "/warehouse": volumes / "warehouse",
            "/tmp": volumes / "tmp",
            "/opt/spark/conf/spark.properties": properties,
        },
        variables={"SPARK_DRIVER_BIND_ADDRESS": "127.0.0.1"},
    )

    assert done.returncode == 0, done.stderr
    assert "one-record-batches" in done.stdout
    assert len([*(volumes / "warehouse" / "indexes").rglob("*index")]) == 51
    assert _compiled(volumes) == []
