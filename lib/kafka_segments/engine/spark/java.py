"""Whether there is a Java that Spark runs on, told before Spark is started."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from kafka_segments.engine.spark.home import spark_home
from kafka_segments.errors import UsageError

LEAST_JAVA = 17
_WHAT_TO_DO = "install one (e.g. apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
_RELEASE = re.compile(r'^JAVA_VERSION="?([^"\s]+)', re.MULTILINE)
_SPOKEN = re.compile(r'version "([^"]+)"')
_SECONDS = 20


def require_java() -> None:
    """Refuse to go on without the Java that Spark would take: JAVA_HOME's, else that of PATH.

    Nothing is asked where another process has started the JVM, or a file of Spark's own may set
    another Java.

    Raises:
        UsageError: there is none, or it is too old.
    """
    if os.environ.get("PYSPARK_GATEWAY_PORT") or os.environ.get("SPARK_REMOTE"):
        return
    if _spark_sets_its_own():
        return
    java = find_java()
    version = java_version(java)
    if version is not None and feature_release(version) < LEAST_JAVA:
        raise UsageError(
            f"{java} is Java {version}, Spark needs {LEAST_JAVA} or later: {_WHAT_TO_DO}"
        )


def find_java() -> Path:
    """Find the program that Spark's scripts run.

    Raises:
        UsageError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise UsageError(
                f"JAVA_HOME is {home}, and there is no program {java}: set it to the folder of a"
                f" Java {LEAST_JAVA} or later, or unset it to take `java` from PATH"
            )
        return java
    found = shutil.which("java")
    if found is None:
        raise UsageError(
            f"no `java` in PATH, and JAVA_HOME is not set: Spark needs Java {LEAST_JAVA} or later;"
            f" {_WHAT_TO_DO}"
        )
    return Path(found)


def java_version(java: Path) -> str | None:
    """Return a Java's version, such as 17.0.15: by the file beside it, else by asking it.

    None: neither tells.
    """
    home = java.resolve().parents[1]
    for folder in (home, home.parent):  # Java 8 has its programs in jre/bin
        try:
            found = _RELEASE.search((folder / "release").read_text("utf-8", "replace"))
        except OSError:
            continue
        if found:
            return found[1]
    try:
        asked = subprocess.run(  # noqa: S603  the program that Spark would run
            [java, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = _SPOKEN.search(asked.stderr)
    return said[1] if said else None


def feature_release(version: str) -> int:
    """Return the number that counts: 17 of 17.0.15, 8 of 1.8.0_392."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if not numbers:
        return LEAST_JAVA  # Spark will say what it makes of it
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def _spark_sets_its_own() -> bool:
    folders = [os.environ.get("SPARK_CONF_DIR")]
    home = spark_home()
    if home is not None:
        folders.append(str(home / "conf"))
    return any(Path(folder, "spark-env.sh").exists() for folder in folders if folder)
