"""Spark's JVM that ends before the command does: told in one line, with what to do."""

import signal
import socket
import subprocess
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from kafka_segments.engine.spark.connect import is_connect
from kafka_segments.engine.workarounds.jvm import jvm_of
from kafka_segments.errors import SparkEndedError

_PATIENCE_SECONDS = 10.0
_OUT_OF_MEMORY = 52  # Spark's own status, where a task's thread had no room
_MORE_MEMORY = "PYSPARK_SUBMIT_ARGS='--driver-memory 4g pyspark-shell'"
_AGAIN = "what was done is kept, run it again"


def jvm_end(spark: SparkSession, error: Exception) -> SparkEndedError | None:
    """Return what ended a session's JVM, None where it lives and ``error`` has another cause.

    A session of Spark Connect has none: ``connect_session`` tells its end.
    """
    if is_connect(spark):
        return None
    process, address = jvm_of(spark)
    if process is None:  # spark-submit started it
        if _answers(address):
            return None
        return SparkEndedError("Spark's JVM ended", f"its log says why; {_AGAIN}")
    try:
        status = process.wait(_PATIENCE_SECONDS if _is_cut_off(error) else 0)
    except subprocess.TimeoutExpired:
        return None
    return told_by_status(status, Path.cwd() / f"hs_err_pid{process.pid}.log")


def told_by_status(status: int, crash_report: Path) -> SparkEndedError:
    """Say why a JVM ended by its status, and by the report that one leaves where it crashes."""
    number = -status if status < 0 else status - 128
    name = signal.Signals(number).name if number in signal.valid_signals() else ""
    if status == _OUT_OF_MEMORY:
        what, do = f"out of memory, status {status}", f"give it more by {_MORE_MEMORY}"
    elif crash_report.exists():
        what = f"it crashed, {name or f'status {status}'}: {_crash(crash_report)}"
        do = f"{crash_report} has the rest"
    elif name == "SIGKILL":
        what = "SIGKILL, as the kernel ends what it has no memory for"
        do = "see `dmesg`, give the machine or its container more memory, or run less beside it"
    elif name:
        what, do = name, "who sent it knows why"
    else:
        what, do = f"status {status}", "the lines above say why"
    return SparkEndedError(f"Spark's JVM ended: {what}", f"{do}; {_AGAIN}")


def _is_cut_off(error: Exception) -> bool:
    is_py4j = isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)
    return is_py4j or isinstance(error, ConnectionError | EOFError)


def _answers(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=_PATIENCE_SECONDS).close()
    except OSError:
        return False
    return True


def _crash(report: Path) -> str:
    """Return the first line of a crash report that is not in all of them."""
    with report.open(encoding="utf-8", errors="replace") as lines:
        said = [line.lstrip("# ").strip() for line in lines if line.startswith("#")]
    told = [line for line in said if line and not line.startswith("A fatal error has been")]
    return told[0] if told else "without a word"
