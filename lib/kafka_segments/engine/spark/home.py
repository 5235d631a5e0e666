"""Where the Spark lies that a session starts: SPARK_HOME's, if it is one of our release."""

import os
import re
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

_CORE = re.compile(r"spark-core_[\d.]+-(\d+\.\d+)\.")


def spark_home() -> Path | None:
    """Return the folder of the Spark that a session starts; None: there is none."""
    named = os.environ.get("SPARK_HOME")
    if named and why_foreign(Path(named)) is None:
        return Path(named)
    package = find_spec("pyspark")
    return Path(package.origin).parent if package and package.origin else None


def foreign_home() -> str | None:
    """Return in words that SPARK_HOME is none to start; None: it is one, or is not set."""
    named = os.environ.get("SPARK_HOME")
    reason = why_foreign(Path(named)) if named else None
    return reason and f"SPARK_HOME is {named}, {reason}"


def why_foreign(home: Path) -> str | None:
    """Return why a folder's Spark does not go with our PySpark; None: it does."""
    if not os.access(home / "bin" / "spark-submit", os.X_OK):
        return "where there is no bin/spark-submit"
    found = {core[1] for jar in (home / "jars").glob("spark-core_*") if (core := _core(jar))}
    ours = _ours()
    if ours is None or not found or ours in found:
        return None
    return f"which has Spark {', '.join(sorted(found))}, and PySpark is {ours}"


def _core(jar: Path) -> re.Match[str] | None:
    return _CORE.match(jar.name)


def _ours() -> str | None:
    """Return the first two numbers of PySpark's release, None where no package tells it."""
    try:
        return ".".join(version("pyspark").split(".")[:2])
    except PackageNotFoundError:
        return None
