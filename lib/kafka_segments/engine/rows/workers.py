"""The Python of Spark's workers, which must have this package, in the driver's release.

A session takes it from PYSPARK_PYTHON when it starts, else ``python3`` of the PATH, which in a
notebook is often another Python than the notebook's own.
"""

import os
import re
import shutil
import sys
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.errors import UsageError
from kafka_segments.release import __version__

_VARIABLE = "PYSPARK_PYTHON"
_SIGNS = re.compile(r"(?:\[PYTHON_VERSION_MISMATCH\]|Cannot run program).*")
_MOST_SAID = 250


def take_own_python(spark: SparkSession) -> None:
    """Let the workers of a local session run the driver's Python, where nobody has set another."""
    context = _local_context(spark)
    if context is not None and _VARIABLE not in os.environ:
        context.pythonExec = sys.executable


def require_package(spark: SparkSession) -> None:
    """Refuse a session whose workers have not this package; they are asked by a job of one row.

    Nothing is asked where they run the driver's own Python.

    Raises:
        UsageError: they have not, in another release, or their Python does not start.
    """
    if _is_own_python(spark):
        return
    try:
        row = spark.range(1).select(F.udf(_look(), useArrow=False)()).first()
    except (PySparkException, Py4JError) as error:
        said = _telling_line(str(error))
        if said is None:
            raise
        raise UsageError(
            f"Spark's workers do not run this Python: {said}; {_to_do(spark)}"
        ) from None
    python, _, found = str(row[0]).partition("\n") if row else ("", "", "")
    if found != __version__:
        has = f"kafka-segments {found}, {__version__} expected" if found else "no kafka-segments"
        raise UsageError(f"the Python of Spark's workers, {python}, has {has}: {_to_do(spark)}")


def _look() -> Any:
    """Return a function that looks around in a worker; local, so it takes its code there."""

    def look() -> str:
        import sys  # noqa: PLC0415

        try:
            from kafka_segments import __version__ as found  # noqa: PLC0415
        except ImportError:
            found = ""
        return f"{sys.executable}\n{found}"

    return look


def _local_context(spark: SparkSession) -> Any:
    """Return the context of a session that runs on this machine alone, None of any other."""
    context: Any = getattr(spark, "sparkContext", None)  # a client of Spark Connect has none
    return context if context is not None and context.master.startswith("local") else None


def _is_own_python(spark: SparkSession) -> bool:
    context = _local_context(spark)
    if context is None:
        return False
    workers = shutil.which(context.pythonExec)  # not resolved: an environment's is a link
    return workers is not None and os.path.abspath(workers) == os.path.abspath(sys.executable)


def _telling_line(text: str) -> str | None:
    found = _SIGNS.search(text)
    return found[0][:_MOST_SAID].rstrip() if found else None


def _to_do(spark: SparkSession) -> str:
    if _local_context(spark) is not None:
        return f"unset {_VARIABLE}, or set it to {sys.executable}, and start the session anew"
    if getattr(spark, "sparkContext", None) is None:
        return (
            "the server of Spark Connect chooses it: install the package there, or start the server"
            f" with {_VARIABLE} naming a Python that has it"
        )
    return (
        f"set {_VARIABLE} to one that has it on every node before the session starts, or ship an"
        " environment, see docs/clusters.md"
    )
