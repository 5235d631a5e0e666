"""A log directory of messages v0 and v1, migrated, under a real 4.3.1 broker, and rolled back."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from pyspark.sql import Row, SparkSession

from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.text.checkpoints import PARTITION_METADATA, parse_partition_metadata
from kafka_segments.verbs.change.migrate.plan.run import MigrationOptions, run_plan
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules
from kafka_segments.verbs.change.migrate.steps.run import Migration
from support.kafka.kafka_broker import KafkaBroker
from support.kafka.kafka_referee import Referee
from support.model.plain_decoder import PlainRecord, plain_records

GOLDEN = ("v0-multi-segment", "v0-gzip", "v1-lz4-createtime", "v1-gzip-logappendtime")
GENERATED = {"legacy": 2, "mixed": 2}
SEED = int(os.environ.get("MIGRATION_SEED", "7"))
MTIME_NS = 1_400_000_000_123_456_789
NOW_MS = 1_795_000_000_000
_CONTROL = 0x20
Tree = dict[str, tuple[str, int]]


@pytest.fixture(scope="module")
def first(synthetic: Path, referee: Referee, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Partitions' folders as an old cluster leaves them: segments and no index files."""
    first = tmp_path_factory.mktemp("first")
    for case in GOLDEN:
        shutil.copytree(synthetic / case / "t-0", first / f"{case}-0")
    for kind, count in GENERATED.items():
        for number in range(count):
            made = referee.generate(first / "made", SEED + number, kind)
            made.rename(first / f"{kind}-{number}-0")
    (first / "made").rmdir()
    for log in first.glob("*/*.log"):
        os.utime(log, ns=(MTIME_NS, MTIME_NS))
    return first


def _give(kafka: KafkaBroker, first: Path, kept: str = "") -> None:
    """Put the first segments into the partitions that the broker made; one file stays there."""
    for folder in first.iterdir():
        target = kafka.log_dir / folder.name
        for file in target.iterdir():
            if file.name != kept:
                file.unlink()
        shutil.copytree(folder, target, dirs_exist_ok=True)


def _write_ends(kafka: KafkaBroker, first: Path) -> None:
    """Say that all logs are flushed and replicated to their ends."""
    ends = {folder.name: _records(folder)[-1].offset + 1 for folder in first.iterdir()}
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        lines = (kafka.log_dir / name).read_text().splitlines()[2:]
        kept = [line for line in lines if "-".join(line.split()[:2]) not in ends]
        kept += [f"{' '.join(key.rsplit('-', 1))} {end}" for key, end in ends.items()]
        (kafka.log_dir / name).write_text("\n".join(["0", str(len(kept)), *kept, ""]))


def _records(folder: Path) -> list[PlainRecord]:
    logs = sorted(folder.glob("*.log"))
    return [record for log in logs for record in plain_records(log.read_bytes())]


def _line(
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> str:
    """Write a record as ``KafkaBroker.fetch`` does."""
    texts = [key, value, *(part for name, data in headers for part in (name.encode(), data))]
    hexed = ("-" if text is None else text.hex() for text in texts)
    return " ".join([str(offset), str(timestamp), *hexed])


def _lines(folder: Path) -> Iterator[str]:
    """Give what a consumer sees of a log: no control records."""
    for log in sorted(folder.glob("*.log")):
        data = log.read_bytes()
        for record in plain_records(data):
            at = record.batch_position
            if data[at + 16] != 2 or not data[at + 22] & _CONTROL:
                yield _line(*record[1:])


def _queries(folder: Path) -> list[str]:
    """Ask for the ends, and for times at, before and behind some records' timestamps."""
    stamps = sorted({record.timestamp for record in _records(folder)} - {-1})
    near = [time + step for time in stamps[:: len(stamps) // 20 + 1] for step in (-1, 0, 1)]
    mtime_ms = MTIME_NS // 1_000_000
    times = sorted({time for time in (*near, mtime_ms, mtime_ms + 1) if time >= 0})
    return ["EARLIEST", "LATEST", "MAX_TIMESTAMP", *map(str, times)]


def _consumed(kafka: KafkaBroker, partition: str) -> list[str]:
    """Read a partition to its end with confluent-kafka."""
    topic, _, number = partition.rpartition("-")
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, int(number), OFFSET_BEGINNING)])
        found = []
        while (message := consumer.poll(60)) is not None:
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                return found
            timestamp = message.timestamp()[1]
            form = message.key(), message.value(), message.headers() or ()
            found.append(_line(message.offset(), timestamp, *form))
        raise AssertionError(f"{partition}: no message and no end in 60 s")
    finally:
        consumer.close()


def _as_batches_v2(answers: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Give a broker's answers for the same records in batches v2.

    Where no record has a timestamp, it names the first one as that with the greatest.
    """
    earliest, latest, greatest, *by_time = answers
    first = earliest[0], -1
    return [earliest, latest, first if greatest == (-1, -1) else greatest, *by_time]


def _tree(folder: Path, names: set[str]) -> Tree:
    return {
        str(file.relative_to(folder)): (
            sha256(file.read_bytes()).hexdigest(),
            file.stat().st_mtime_ns,
        )
        for name in names
        for file in (folder / name).iterdir()
    }


def test_a_broker_serves_migrated_logs_as_the_first_and_all_can_be_had_back(
    spark: SparkSession, first: Path, tmp_path: Path
) -> None:
    partitions = {folder.name for folder in first.iterdir()}
    queries = {name: _queries(first / name) for name in partitions}
    with KafkaBroker(tmp_path) as kafka:
        kafka.start_broker()
        kafka.create({name.removesuffix("-0"): 1 for name in partitions})
        kafka.stop_broker()
        ids = {name.removesuffix("-0"): _topic_id(kafka, name) for name in partitions}
        _give(kafka, first, kept=PARTITION_METADATA)
        _write_ends(kafka, first)
        kafka.start_broker()
        answers = kafka.list_offsets(queries)
        kafka.stop_broker()
        _give(kafka, first)
        before = _tree(kafka.log_dir, partitions)

        rules = MigrationRules(convert=True)
        warehouse = Warehouse(spark, str(tmp_path / "wh"))
        options = MigrationOptions((str(kafka.log_dir),), rules, NOW_MS, plan_id="p", topic_ids=ids)
        with ExitStack() as caches:
            run_plan(warehouse, options, caches, dry_run=False)
        migration = Migration(warehouse, "p", now_ms=NOW_MS)
        assert {step.status for step in migration.stage()} == {"done"}
        assert {step.status for step in migration.verify()} == {"done"}
        steps = list(migration.apply(execute=True))
        assert {Path(step.log).name for step in steps if step.status == "done"} == partitions
        magics = {log.read_bytes()[16] for name in partitions for log in _logs(kafka, name)}
        assert magics == {2}

        kafka.start_broker()
        try:
            assert kafka.list_offsets(queries) == {
                name: _as_batches_v2(asked) for name, asked in answers.items()
            }
            for name in partitions:
                kafka.fetch(name, tmp_path / name, first=answers[name][0][0])
                expected = list(_lines(first / name))
                assert (tmp_path / name).read_text().splitlines() == expected, name
                assert _consumed(kafka, name) == expected, name
        finally:
            kafka.stop_broker()

        for step in migration.roll_back(execute=True, discard=False):
            assert step.status == "done", step
        assert _tree(kafka.log_dir, partitions) == before


def _damaged(synthetic: Path, every: int) -> dict[str, Path]:
    """Give the cases that recovery cuts and loads, or a part of them, as partitions by number."""
    cases = []
    for case in sorted(folder.parent for folder in synthetic.glob("*/t-0")):
        segments = json.loads((case / "expected" / "segments.json").read_text())
        load = json.loads((case / "expected" / "loader-missing.json").read_text())
        if any(segment.get("truncatedBytes") for segment in segments) and "threw" not in load:
            cases.append(case)
    return {str(number): case for number, case in enumerate(cases[::every])}


def _damaged_queries(case: Path) -> list[str]:
    load = json.loads((case / "expected" / "loader-missing.json").read_text())
    times = [asked["timestamp"] for asked in load["listOffsets"] if asked["timestamp"] >= 0]
    chosen = times[:: len(times) // 8 + 1]
    return ["EARLIEST", "LATEST", "MAX_TIMESTAMP", *map(str, chosen)]


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.long)])
def test_damaged_logs_are_refused_or_cut_as_the_brokers_recovery_cuts_them(
    spark: SparkSession, synthetic: Path, tmp_path: Path, every: int
) -> None:
    cases = _damaged(synthetic, every)
    assert len(cases) > 20 // every
    with KafkaBroker(tmp_path) as kafka:
        kafka.start_broker()
        kafka.create({"recovered": len(cases), "migrated": len(cases)})
        kafka.stop_broker()
        for number, case in cases.items():
            for topic in ("recovered", "migrated"):
                folder = kafka.log_dir / f"{topic}-{number}"
                for file in folder.iterdir():
                    if file.name != PARTITION_METADATA:
                        file.unlink()
                shutil.copytree(case / "t-0", folder, dirs_exist_ok=True)
        recovered = [kafka.log_dir / f"recovered-{number}" for number in cases]
        for folder in recovered:  # not the migration's to see
            folder.rename(tmp_path / folder.name)
        before = _tree(kafka.log_dir, {f"migrated-{number}" for number in cases})
        planned = _plan_of(spark, kafka, tmp_path, "refused", cut_damaged=False)
        assert {row["action"] for row in planned if row["topic"] == "migrated"} <= {
            "refuse",
            "indexes",  # of other segments of the same logs
        }
        assert not any(row["is_migrated"] for row in planned)
        staged = Migration(Warehouse(spark, str(tmp_path / "wh")), "refused", now_ms=NOW_MS).stage()
        assert [step.status for step in staged] == ["refused"] * len(cases)

        planned = _plan_of(spark, kafka, tmp_path, "cut", cut_damaged=True)
        metadata = [row for row in planned if row["topic"] == "__cluster_metadata"]
        assert [(row["action"], row["is_migrated"]) for row in metadata] == [("keep", False)]
        assert "rules of its own" in metadata[0]["reason"]
        migration = Migration(Warehouse(spark, str(tmp_path / "wh")), "cut", now_ms=NOW_MS)
        for steps in (migration.stage(), migration.verify(), migration.apply(execute=True)):
            assert [step.message for step in steps if step.status != "done"] == []
        for folder in recovered:
            (tmp_path / folder.name).rename(folder)

        kafka.start_broker()
        try:
            queries = {
                f"{topic}-{number}": _damaged_queries(case)
                for number, case in cases.items()
                for topic in ("recovered", "migrated")
            }
            answers = kafka.list_offsets(queries)
            for number, case in cases.items():
                load = json.loads((case / "expected" / "loader-missing.json").read_text())
                answer = answers[f"migrated-{number}"]
                assert answer == answers[f"recovered-{number}"], case.name
                assert answer[1][0] == load["logEndOffset"], case.name
                read = []
                for topic in ("recovered", "migrated"):
                    target = tmp_path / f"{topic}-{number}.txt"
                    kafka.fetch(f"{topic}-{number}", target, first=answer[0][0])
                    read.append(target.read_text())
                assert read[0] == read[1], case.name
        finally:
            kafka.stop_broker()
        for step in migration.roll_back(execute=True, discard=False):
            assert step.status == "done", step
        assert _tree(kafka.log_dir, {f"migrated-{number}" for number in cases}) == before


def _plan_of(
    spark: SparkSession, kafka: KafkaBroker, tmp_path: Path, plan_id: str, *, cut_damaged: bool
) -> list[Row]:
    options = MigrationOptions(
        (str(kafka.log_dir),),
        MigrationRules(cut_damaged=cut_damaged),
        NOW_MS,
        plan_id=plan_id,
    )
    with ExitStack() as caches:
        _, planned = run_plan(
            Warehouse(spark, str(tmp_path / "wh")), options, caches, dry_run=False
        )
        return planned.collect()


def _topic_id(kafka: KafkaBroker, name: str) -> str:
    return parse_partition_metadata((kafka.log_dir / name / PARTITION_METADATA).read_text())


def _logs(kafka: KafkaBroker, name: str) -> list[Path]:
    return [log for log in (kafka.log_dir / name).glob("*.log") if log.stat().st_size]
