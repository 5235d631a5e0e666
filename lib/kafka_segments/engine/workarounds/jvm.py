"""A workaround: PySpark says nothing in public of the JVM that it started.

How the JVM ended, what it is to remove when it ends, and whether there is one at all, only
attributes tell that are not public. PySpark 4.2.0 needs this still; with an API for the driver's
process it can go.
"""

import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from pyspark import SparkContext
from pyspark.sql import SparkSession


class SparkJvm(NamedTuple):
    """The JVM of a classic session: its process, None if spark-submit started it; its address."""

    process: "subprocess.Popen[bytes] | None"
    address: tuple[str, int]


def jvm_of(spark: SparkSession) -> SparkJvm:
    """Return the JVM of a classic session, which may have ended."""
    gateway: Any = spark.sparkContext._gateway
    return SparkJvm(gateway.proc, (gateway.java_parameters.address, gateway.java_parameters.port))


def has_jvm() -> bool:
    """Tell whether a session of this process has a JVM; it is not asked."""
    return SparkContext._active_spark_context is not None


def end_jvm() -> None:
    """End the JVM that this process started, if any, and wait until it has."""
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


def let_jvm_remove(spark: SparkSession, folder: Path) -> None:
    """Have the JVM remove a folder when it ends: this process may be killed before it."""
    jvm: Any = spark.sparkContext._jvm
    hooks = jvm.org.apache.spark.util.ShutdownHookManager
    hooks.registerShutdownDeleteDir(jvm.java.io.File(str(folder)))
