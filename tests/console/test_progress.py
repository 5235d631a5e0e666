"""Progress on a terminal: bytes and the time left; the result itself goes to stdout alone."""

import io
import sys
import threading
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkStageInfo

from kafka_segments.console.bar import ReadingHere, ReadingStage, ReadProgress
from kafka_segments.console.output import console, size_text
from kafka_segments.console.progress import progress
from kafka_segments.engine.limits import Load

GIB = 1024**3


def _stage(number: int, done: int, tasks: int) -> SparkStageInfo:
    return SparkStageInfo(number, 0, "stage", tasks, 0, done, 0)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Spark:
    """As much of a session as the bar looks at: one stage of sixteen tasks, half of them done."""

    sparkContext: Any  # noqa: N815

    def __init__(self) -> None:
        self.sparkContext = self

    def statusTracker(self) -> "_Spark":  # noqa: N802
        return self

    def getActiveStageIds(self) -> list[int]:  # noqa: N802
        return [7]

    def getStageInfo(self, number: int) -> SparkStageInfo:  # noqa: N802
        return _stage(number, 8, 16)


def test_what_is_read_is_told_in_bytes_and_the_time_left() -> None:
    work = ReadProgress()
    reading = ReadingStage(work)

    assert reading.told([_stage(1, 0, 16)], 0.0) is None
    work.reads(Load(40, 4 * GIB), 16)
    assert reading.told([_stage(1, 3, 4)], 1.0) is None
    assert reading.told([_stage(2, 0, 16), _stage(1, 3, 4)], 2.0) == "read 0 bytes of 4.0 GiB"
    assert reading.told([_stage(2, 4, 16)], 12.0) == "read 1.0 GiB of 4.0 GiB, 30 s left"
    assert reading.told([_stage(2, 1, 16)], 12.0) == ("read 256.0 MiB of 4.0 GiB, 2 min 30 s left")


def test_a_later_stage_of_as_many_tasks_reads_nothing_more() -> None:
    work = ReadProgress()
    work.reads(Load(4, GIB), 16)
    reading = ReadingStage(work)
    reading.told([_stage(2, 0, 16), _stage(3, 0, 16)], 0.0)

    assert reading.told([_stage(3, 8, 16)], 9.0) is None


def test_what_is_told_later_is_read_by_a_later_stage() -> None:
    work = ReadProgress()
    work.reads(Load(4, GIB), 16)
    reading = ReadingStage(work)
    reading.told([_stage(2, 8, 16)], 0.0)
    work.reads(Load(4, 2 * GIB), 16)

    assert reading.told([_stage(2, 8, 16)], 9.0) is None
    assert reading.told([_stage(2, 8, 16), _stage(5, 0, 16)], 9.0) == "read 0 bytes of 2.0 GiB"
    assert reading.told([_stage(5, 4, 16)], 19.0) == "read 512.0 MiB of 2.0 GiB, 30 s left"


def test_where_a_few_bytes_of_each_segment_are_looked_at_segments_are_told() -> None:
    work = ReadProgress()
    work.reads(Load(1_000_000, 0), 16)
    reading = ReadingStage(work)
    reading.told([_stage(2, 0, 16)], 0.0)

    assert reading.told([_stage(2, 4, 16)], 10.0) == (
        "looked at 250,000 of 1,000,000 segments, 30 s left"
    )
    work.looks_in_driver(40, "logs")
    work.has_read(10)
    assert ReadingHere(work).told([], 0.0) == "looked at 10 of 40 logs, 0 s left"


def test_what_this_process_reads_is_told_without_a_stage_and_without_a_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = ReadProgress()
    reading = ReadingHere(work)
    assert reading.told([], 0.0) is None
    work.reads_in_driver(4 * GIB)
    assert reading.told([], 1.0) == "read 0 bytes of 4.0 GiB"
    work.has_read(GIB)
    assert reading.told([], 11.0) == "read 1.0 GiB of 4.0 GiB, 30 s left"
    assert (reading.done, reading.total) == (GIB, 4 * GIB)
    work.has_read(3 * GIB)
    assert reading.told([], 12.0) is None

    err = _Terminal()
    monkeypatch.setattr("sys.stderr", err)
    with progress(None) as shown:
        shown.reads_in_driver(4 * GIB)
        shown.has_read(GIB)
        while "read 1.0 GiB of 4.0 GiB" not in err.getvalue():
            pass


def test_the_bar_goes_to_stderr_and_before_the_first_line_of_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, err = _Terminal(), _Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)

    with progress(_Spark()) as work:  # type: ignore[arg-type]
        work.reads(Load(1, GIB), 16)
        while "512.0 MiB of 1.0 GiB" not in err.getvalue():
            pass
        sys.stdout.write("row\n")
        after = err.getvalue()
        print("row", file=sys.stdout)

    assert out.getvalue() == "row\nrow\n"
    assert err.getvalue() == after
    assert sys.stdout is out


def test_no_bar_is_shown_where_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(_Spark()):  # type: ignore[arg-type]
        sys.stdout.write("row\n")

    assert capsys.readouterr() == ("row\n", "")


def test_sizes_are_written_for_a_person() -> None:
    assert [size_text(size) for size in (0, 1023, 1536, 2.0**60)] == [
        *("0 bytes", "1023 bytes", "1.5 KiB", "1024.0 PiB"),
    ]


def test_a_jvm_that_is_gone_stops_the_bar_without_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    err = _Terminal()
    spark = _Spark()
    asked = threading.Event()

    def gone() -> list[int]:
        asked.set()
        raise Py4JNetworkError("the JVM is gone")

    monkeypatch.setattr(spark, "getActiveStageIds", gone)
    monkeypatch.setattr("sys.stderr", err)

    with progress(spark):  # type: ignore[arg-type]
        assert asked.wait(10)

    assert "Traceback" not in err.getvalue()


def test_a_name_that_looks_like_an_emojis_is_printed_as_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console().print("/data/:heart:/t-0")

    assert capsys.readouterr().out == "/data/:heart:/t-0\n"
