"""A warehouse without ``__consumer_offsets`` is refused before Spark starts."""

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake

from kafka_segments.cli import cli
from kafka_segments.errors import UsageError
from kafka_segments.verbs.find.lag.offsets_topic import refuse_without_offsets

OFFSETS = "__consumer_offsets"


def _warehouse(folder: Path, *rows: tuple[str, str, int | None]) -> str:
    topics, clusters, gone = zip(*rows, strict=True)
    segments = {
        "topic": pa.array(topics),
        "cluster": pa.array(clusters),
        "vanished_at": pa.array(gone, pa.timestamp("us", "UTC")),
    }
    write_deltalake(str(folder / "segments"), pa.table(segments))
    write_deltalake(str(folder / "logs"), pa.table({"topic": topics}))
    return str(folder)


@pytest.mark.parametrize("row", [("t", "a", None), (OFFSETS, "a", 1)])
def test_none_and_one_that_has_vanished_are_none(
    tmp_path: Path, row: tuple[str, str, int | None]
) -> None:
    warehouse = _warehouse(tmp_path, row)

    done = CliRunner().invoke(cli, ["lag", "--warehouse", warehouse, "--cluster", "a"])

    assert (done.exit_code, done.stderr) == (
        2,
        f"kafka-segments: {tmp_path} has no segments of __consumer_offsets: give `kafka-segments"
        " build` the log directories of the brokers that hold it\n",
    )


def test_where_there_are_some_the_run_goes_on(tmp_path: Path) -> None:
    warehouse = _warehouse(tmp_path, ("t", "a", None), (OFFSETS, "a", None))

    refuse_without_offsets(warehouse, cluster="a")
    refuse_without_offsets(warehouse, cluster=None)
    with pytest.raises(UsageError, match=r"of cluster b: it has a$"):
        refuse_without_offsets(warehouse, cluster="b")


def test_what_cannot_be_read_here_is_left_to_spark(tmp_path: Path) -> None:
    refuse_without_offsets(str(tmp_path), cluster=None)
