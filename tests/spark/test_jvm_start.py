"""A start of Spark's JVM that failed: its cause by what was said, as Java 17 and Spark say it."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError

from kafka_segments.engine.spark import session
from kafka_segments.engine.spark.jvm_start import start_cause, start_error
from kafka_segments.errors import SparkEndedError, UsageError

ROOT = Path(__file__).resolve().parents[2]
_REFUSED = "Error: Could not create the Java Virtual Machine.\n"
OF_USER = {
    "java.net.UnknownHostException: db-7: db-7: Name or service not known": (
        "host name db-7 does not resolve",
        "/etc/hosts (127.0.0.1 db-7)",
    ),
    "java.nio.file.FileSystemException: /x/a.jar: Too many open files": (
        "more open files are needed",
        "ulimit -n 4096",
    ),
    "[warning][os,thread] Failed to start thread: pthread_create failed (EAGAIN)": (
        "no more threads",
        "ulimit -u",
    ),
    'Failed to start thread "GC Thread#0" - pthread_create failed (EPERM)': ("seccomp", "renew it"),
    f"Invalid maximum heap size: -Xmx2gg\n{_REFUSED}": ("-Xmx2gg", "--driver-memory"),
    "IllegalArgumentException: System memory 104857600 must be at least 471859200. Please": (
        "the 471859200 bytes that Spark needs",
        "--driver-memory",
    ),
    "SparkSubmit has been compiled by a more recent version of the Java Runtime (class file version"
    " 61.0), this version of the Java Runtime only recognizes class file versions up to 55.0": (
        "too old, it reads classes up to version 55",
        "JAVA_HOME",
    ),
    "java.lang.UnsupportedOperationException: getSubject is not supported": ("newer", "JAVA_HOME"),
    f"Picked up JAVA_TOOL_OPTIONS: -XX:+No\nUnrecognized VM option 'No'\n{_REFUSED}": (
        "an option that JAVA_TOOL_OPTIONS has: Unrecognized VM option 'No'",
        "correct or unset it",
    ),
    "Picked up _JAVA_OPTIONS: -javaagent:/a.jar\nError opening zip file or JAR manifest missing :"
    " /a.jar": ("_JAVA_OPTIONS has: Error opening zip file or JAR manifest missing : /a.jar", ""),
    f"Unrecognized option: -foo\n{_REFUSED}": ("PYSPARK_SUBMIT_ARGS", "correct"),
    "Failed to find Spark jars directory (/opt/s/assembly/target).": ("no whole", "SPARK_HOME"),
    "[Errno 2] No such file or directory: '/opt/s/./bin/spark-submit'": ("no whole", "SPARK_HOME"),
    "Error: Could not find or load main class org.apache.spark.deploy.SparkSubmit": ("whole", ""),
    "Error: Missing application resource.": ("arguments", "it ends in pyspark-shell"),
    "SparkException: When running with master 'yarn' either HADOOP_CONF_DIR or YARN_CONF_DIR": (
        "for a cluster, yarn,",
        "take --master out of PYSPARK_SUBMIT_ARGS",
    ),
    'Unexpected end\n at [row,col,system-id]: [2,0,"file:/etc/hc/core-site.xml"]': (
        "/etc/hc/core-site.xml is no whole XML",
        "HADOOP_CONF_DIR",
    ),
    "java.lang.IllegalArgumentException: KrbException: Cannot locate default realm": (
        "Kerberos, which is not set up here: KrbException: Cannot locate default realm",
        "kinit",
    ),
    "JAVA_HOME is not set": ("no Java was found", "install"),
    "spark-class: line 71: /opt/j/bin/java: cannot execute binary file: Exec format error": (
        "cannot be run, /opt/j/bin/java: cannot execute binary file",
        "made for this machine",
    ),
    "java: error while loading shared libraries: libjli.so: cannot open shared object file": (
        "not whole: error while loading shared libraries: libjli.so",
        "install it anew",
    ),
    "java.lang.InternalError: Error loading java.security file": ("java.security", "ulimit -n"),
    "env: 'bash': No such file or directory": ("bash", "apk add bash"),
    "[Errno 2] No usable temporary directory found in ['/tmp', '/var/tmp']": ("/var/tmp", "TMPDIR"),
    "java.lang.UnsatisfiedLinkError: /tmp/libzstd7.so: /tmp/libzstd7.so: failed to map segment from"
    " shared object: Operation not permitted": ("noexec: /tmp/libzstd7.so", "set TMPDIR"),
    "LoginException: java.lang.NullPointerException: invalid null input: name": (
        "this user's number has no name",
        "/etc/passwd",
    ),
    "java.net.BindException: Cannot assign requested address: Service 'sparkDriver' failed after 16"
    " retries": ("own address: Cannot assign requested address", "SPARK_LOCAL_IP"),
    "An error occurred while trying to connect to the Java server (127.0.0.1:40001): [Errno 111]"
    " Connection refused": ("127.0.0.1", "ip link set lo up"),
    "java.io.FileNotFoundException: /home/x/conf (Permission denied)": ("/home/x/conf", "HOME"),
}
RAN_OUT = {
    "OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory(0x7f, 2147483648, 0) failed; error="
    "'Not enough space' (errno=12)": ("not enough memory", "driver-memory"),
    "Error occurred during initialization of VM\nCould not reserve enough space for 104857600KB"
    " object heap": ("not enough memory", "driver-memory"),
    "Could not allocate compressed class space: 1073741824 bytes": ("not enough memory", ""),
    "java.io.IOException: No space left on device": ("is full", "TMPDIR"),
}


@pytest.mark.parametrize(
    ("said", "is_of_user"),
    [*((said, True) for said in OF_USER), *((said, False) for said in RAN_OUT)],
)
def test_the_cause_and_the_step_by_what_was_said(said: str, is_of_user: bool) -> None:
    what, step = {**OF_USER, **RAN_OUT}[said]

    cause = start_cause(f"WARNING: Using incubator modules\n{said}\n\tat a.b.C(C.java:1)\n")

    assert cause is not None
    assert what in cause.what
    assert step in cause.step
    assert cause.is_of_user == is_of_user
    assert isinstance(start_error(said), UsageError if is_of_user else SparkEndedError)
    assert str(start_error(said)).count("\n") == 0
    assert "Java 17 or later" not in str(start_error(said))


@pytest.mark.parametrize("said", ["", "WARNING: Using incubator modules", "java.lang.Error: x"])
def test_what_nobody_knows_has_no_cause(said: str) -> None:
    assert start_error(said) is None


def _start_of(monkeypatch: pytest.MonkeyPatch, said: str) -> Any:
    def start() -> None:
        subprocess.run(["/bin/echo", said], check=True)
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    builder = SimpleNamespace(getOrCreate=start)
    builder.appName = builder.config = lambda *_, **__: builder
    monkeypatch.setattr(session, "SparkSession", SimpleNamespace(builder=builder))
    with closing(session.JvmLines()) as lines:
        return session._start("x", {}, lines)


def test_a_known_cause_is_one_line_and_an_unknown_one_has_the_jvms_own_lines(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="did not start: the host name h-1 does not resolve: add"):
        _start_of(monkeypatch, "java.net.UnknownHostException: h-1: h-1: unknown")
    assert capfd.readouterr().err == ""

    with pytest.raises(SparkEndedError, match="did not start: the lines above say why") as ended:
        _start_of(monkeypatch, "java.lang.Error: what nobody saw before")
    assert not ended.value.is_understood
    assert capfd.readouterr().err == "java.lang.Error: what nobody saw before\n"


_PROGRAM = """
import resource, sys
from pathlib import Path
from kafka_segments.engine.spark.session import spark_session
with spark_session("test", root=Path(sys.argv[1])) as spark:
    print(spark.range(3).count(), resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 256)
"""


@pytest.mark.long
def test_spark_starts_without_a_host_name_with_few_open_files_and_beside_a_foreign_spark() -> None:
    limits = "ulimit -S -n 256; export SPARK_HOME=/opt/spark-3.5"
    script = f'hostname no-such-host-x 2>/dev/null || exit 77; {limits}; exec "$@"'
    program = [sys.executable, "-c", _PROGRAM, str(ROOT)]
    # what a session of the tests' own process set there is not the program's
    env = {name: value for name, value in os.environ.items() if "SPARK" not in name}

    done = subprocess.run(
        ["unshare", "-u", "sh", "-c", script, "sh", *program],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("no namespace of one's own here")
    assert (done.stdout, done.returncode) == ("3 True\n", 0), done.stderr
    assert "SPARK_HOME is /opt/spark-3.5, where there is no bin/spark-submit" in done.stderr
