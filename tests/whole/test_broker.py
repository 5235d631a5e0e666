"""A real KRaft broker on a log directory whose index files are all ours."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.run import run_build
from support.kafka.kafka_broker import KafkaBroker
from support.model.plain_decoder import plain_records

INDEXES = (".index", ".timeindex")
RECOVERY = re.compile(r"unflushed segment|index file|orphaned")
_CONTROL = 0x20

Files = dict[Path, tuple[int, bytes]]


@pytest.fixture(scope="module")
def kafka(
    spark: SparkSession, broker: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaBroker]:
    """A broker, stopped cleanly, that owns the corpus's partitions; index files by our build."""
    folder = tmp_path_factory.mktemp("kafka")
    with KafkaBroker(folder) as kafka:
        partitions = sorted((broker / "logs").iterdir())
        kafka.start_broker()
        topics = [partition.name.rpartition("-")[0] for partition in partitions]
        kafka.create({topic: topics.count(topic) for topic in topics})
        kafka.stop_broker()
        for partition in partitions:
            _give(kafka.log_dir / partition.name, partition, broker / "rebuilt" / partition.name)
        _write_checkpoints(kafka.log_dir, broker)
        options = BuildOptions(
            (str(kafka.log_dir),),
            RecoveryOptions(),
            1_795_000_000_000,
            in_place=True,
        )
        run_build(Warehouse(spark, str(folder / "warehouse")), options)
        kafka.log_file.write_text("")
        yield kafka


def _give(folder: Path, segments: Path, rebuilt: Path) -> None:
    """Put other segments into a partition that the broker made; no index files come with them."""
    for file in folder.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    shutil.copytree(segments, folder, dirs_exist_ok=True)
    for file in rebuilt.iterdir():
        if not file.name.endswith(INDEXES):
            shutil.copy(file, folder)


def _write_checkpoints(log_dir: Path, broker: Path) -> None:
    """Say that all logs are flushed and replicated to their ends."""
    ends = {
        name: next(row["offset"] for row in answers if row["query"] == "LATEST")
        for name, answers in json.loads((broker / "listoffsets.json").read_text()).items()
    }
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        kept = [
            line
            for line in (log_dir / name).read_text().splitlines()[2:]
            if "-".join(line.split()[:2]) not in ends
        ]
        lines = kept + [f"{' '.join(key.rsplit('-', 1))} {end}" for key, end in ends.items()]
        (log_dir / name).write_text("\n".join(["0", str(len(lines)), *lines, ""]))


def _index_files(log_dir: Path) -> Files:
    return {
        file: (file.stat().st_mtime_ns, file.read_bytes())
        for file in sorted(log_dir.glob("*/*index"))
        if file.name.endswith(INDEXES) and not file.parent.name.startswith("__")
    }


def _recovery_lines(kafka: KafkaBroker) -> list[str]:
    return [
        line
        for line in kafka.log_file.read_text().splitlines()
        if RECOVERY.search(line) and "__cluster_metadata" not in line
    ]


def _lines(log: bytes) -> Iterator[str]:
    """Give what a consumer sees of a log: no control records."""

    def text(data: bytes | None) -> str:
        return "-" if data is None else data.hex()

    for record in plain_records(log):
        if log[record.batch_position + 22] & _CONTROL:
            continue
        headers = [part for key, value in record.headers for part in (key.encode(), value)]
        parts = (record.key, record.value, *headers)
        yield " ".join([str(record.offset), str(record.timestamp), *map(text, parts)])


def test_a_broker_takes_our_index_files_and_answers_as_before(
    kafka: KafkaBroker, broker: Path, tmp_path: Path
) -> None:
    expected = json.loads((broker / "listoffsets.json").read_text())
    before = _index_files(kafka.log_dir)
    assert len(before) == 2 * len(list((broker / "logs").glob("*/*.log")))

    kafka.start_broker()
    try:
        answers = kafka.list_offsets(
            {name: [row["query"] for row in rows] for name, rows in expected.items()}
        )
        for name in expected:
            kafka.fetch(name, tmp_path / name)
    finally:
        kafka.stop_broker()

    for name, rows in expected.items():
        assert answers[name] == [(row["offset"], row["timestamp"]) for row in rows], name
        logs = sorted((broker / "logs" / name).glob("*.log"))
        records = [line for log in logs for line in _lines(log.read_bytes())]
        assert (tmp_path / name).read_text().splitlines() == records, name
    assert "since clean shutdown file was found" in kafka.log_file.read_text()
    assert _recovery_lines(kafka) == []
    after = _index_files(kafka.log_dir)
    assert {file: data for file, (_, data) in after.items()} == {
        file: data for file, (_, data) in before.items()
    }
    touched = {file.stem for file in after if after[file][0] != before[file][0]}
    active = {max((broker / "logs" / name).glob("*.log")).stem for name in expected}
    assert touched <= active


@pytest.mark.long
def test_a_broker_that_finds_no_offset_index_makes_the_same_files_and_says_so(
    kafka: KafkaBroker,
) -> None:
    before = _index_files(kafka.log_dir)
    missing = kafka.log_dir / "ct-none-0" / f"{1597:020d}.index"
    missing.unlink()
    os.truncate(missing.with_suffix(".timeindex"), 0)
    kafka.log_file.write_text("")

    kafka.start_broker()
    kafka.stop_broker()

    assert any(missing.name.removesuffix(".index") in line for line in _recovery_lines(kafka))
    after = _index_files(kafka.log_dir)
    assert {file: data for file, (_, data) in after.items()} == {
        file: data for file, (_, data) in before.items()
    }
