"""What the command line says on stderr that it is not known, an answer of the API keeps, too."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kafka_segments
from kafka_segments.api.not_known import keeps_told
from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.choose import few_rows
from support.logs.strategies import v2_batch
from support.spark.stored_builds import build_few


class _Answers:
    def __init__(self) -> None:
        self._told: dict[str, None] = {}

    @property
    def told(self) -> list[str]:
        return [*self._told]

    @keeps_told
    def answer(self, *lines: str, fails: bool = False) -> int:
        """Tell lines, and answer or fail."""
        tell_not_known(lines)
        if fails:
            raise ValueError
        return len(lines)


def test_what_an_answer_tells_is_kept_once_also_where_it_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers = _Answers()

    assert answers.answer("a", "b") == 2
    with pytest.raises(ValueError, match=r"^$"):
        answers.answer("b", "c", fails=True)
    tell_not_known(["of others"])

    assert answers.told == ["a", "b", "c"]
    assert capsys.readouterr().err.split() == ["a", "b", "b", "c", "of", "others"]


def test_what_tables_lack_is_told_of_all_answers(spark: SparkSession, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    (logs / "t-0").mkdir(parents=True)
    (logs / "t-0" / f"{0:020d}.log").write_bytes(v2_batch(0, [(1000, b"k", b"v")]))
    (logs / "replication-offset-checkpoint").write_text("0\n1\nt 0 9\n")
    (logs / "log-start-offset-checkpoint").write_bytes(bytes(9))
    build_few(spark, str(logs), str(tmp_path / "tables"), now_ms=1)

    with few_rows(spark), kafka_segments.open(tmp_path / "tables", spark) as warehouse:
        cut, unread = warehouse.not_known()

    assert cut.startswith(
        f"1 log lacks its end. t-0 in {logs}: not known: the log ends at offset 1"
    )
    assert unread.startswith(f"{logs}: what its broker notes there, by which answers go, is not")
