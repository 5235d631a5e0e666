"""What is asked of Spark in one place alone: what that place avoids is easily written anew."""

import ast
from collections.abc import Callable
from pathlib import Path

LIB = Path(__file__).parents[2] / "lib" / "kafka_segments"
PRIVATE = {"_jvm", "_jsc", "_jdf", "_jc", "_jsparkSession", "_gateway", "_active_spark_context"}
"""Where PySpark keeps its JVM, and the JVM's objects behind its own."""


def _that_use(is_meant: Callable[[str], bool]) -> set[str]:
    return {
        file.relative_to(LIB).as_posix()
        for file in LIB.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and is_meant(node.attr)
    }


def test_only_the_stream_of_rows_calls_what_leaks_jobs() -> None:
    assert _that_use("toLocalIterator".__eq__) == {"engine/frames/local_rows.py"}


def test_only_workarounds_use_what_pyspark_keeps_private() -> None:
    room = "engine/workarounds/"

    assert _that_use(PRIVATE.__contains__) == {f"{room}jvm.py", f"{room}kept_rows.py"}
