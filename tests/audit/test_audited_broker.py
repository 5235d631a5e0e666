"""What ``audit`` says of spoilt files, and what a real broker does with them that starts on them,
serves, is written to, rolls and lets retention run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.kafka import kafka_clients as clients
from support.kafka.kafka_broker import KafkaBroker
from support.kafka.spoilt_broker import (
    COMPACTED,
    OF_SEGMENTS,
    Lived,
    Said,
    live,
    look,
    sent,
    topics,
)
from support.logs.spoiled_topics import EPOCHS, KINDS, Log, elsewhere

pytestmark = pytest.mark.long


def _audit(log_dir: Path) -> Said:
    done = CliRunner().invoke(cli, ["audit", "--source", str(log_dir), "--output", "json"])
    assert done.exit_code in (0, 1), done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found: Said = {}
    for row in rows:
        found.setdefault(Path(row["path"]).parent.name.rpartition("-")[0], []).append(row)
    return found


@pytest.fixture(scope="module")
def lived(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """A broker that wrote logs, and lived on with their files spoilt."""
    return live(tmp_path_factory.mktemp("audited"), _audit)


@pytest.mark.parametrize("topic", KINDS)
def test_audit_says_the_verdict_of_each_kind(lived: Lived, topic: str) -> None:
    kind, path = KINDS[topic], lived.spoilt[topic]

    said = [
        (row["verdict"], row["kind"], row["effect"])
        for row in lived.said[topic]
        if Path(row["path"]) == path
    ]

    assert (kind.verdict, kind.kind, kind.effect) in said, lived.said[topic]


def test_nothing_else_is_a_finding(lived: Lived) -> None:
    moved = _with_moved_end()  # snapshots lie behind it
    others = {
        row["path"]: row["effect"]
        for topic in topics()
        if topic not in moved
        for row in lived.said[topic]
        if row["is_finding"] and Path(row["path"]) != lived.spoilt.get(topic)
    }

    assert others == {}


def _with_moved_end() -> list[str]:
    return [topic for topic, kind in KINDS.items() if kind.effect == "log_end_moves_back"]


def test_appends_fail_where_the_end_has_moved_back(lived: Lived) -> None:
    failed = [line for line in lived.errors if "Error processing append" in line]

    assert all(any(f"{topic}-0" in line for line in failed) for topic in _with_moved_end())


def _is_as_before(lived: Lived, topic: str) -> bool:
    return lived.after[topic] == lived.before[topic] and not lived.first_went(topic)


def _looks_up_wrong(lived: Lived, topic: str) -> bool:
    """Tell whether a fetch finds something else; of transactions, whether aborted records come."""
    if topic == "txn-missing":
        return lived.committed[:10] == [*range(10)]
    found = {asked: first for (name, asked), first in lived.firsts.items() if name == topic}
    return any(asked != first for asked, first in found.items())


def _end_moves_back(lived: Lived, topic: str) -> bool:
    end = lived.before[topic].end
    given = [offset for offset in lived.appended[topic] if offset >= 0]
    return lived.after[topic].end < end and min(given) < end


def _deletes(lived: Lived, topic: str) -> bool:
    """Tell whether the spoilt segment went, or stayed for the older one that did not go."""
    is_first = lived.spoilt[topic].stem == f"{0:020d}"
    return lived.first_went(topic) == is_first and len(lived.left(topic)) >= 2


def _loses_epochs(lived: Lived, topic: str) -> bool:
    lost = {"epochs-beyond-log": "7 50000"}.get(topic, "0 0")
    return lost not in (lived.log_dir / f"{topic}-0" / EPOCHS).read_text().splitlines()


def _is_gone(lived: Lived, topic: str) -> bool:
    name = lived.spoilt[topic].name
    started = lived.started / f"{topic}-0" / name
    sound = lived.sound / f"{topic}-0" / name
    return not started.exists() or (sound.exists() and started.read_bytes() == sound.read_bytes())


def _is_rebuilt(lived: Lived, topic: str) -> bool:
    name = lived.spoilt[topic].name
    folders = (lived.sound / f"{topic}-0", lived.started / f"{topic}-0")
    return len({(folder / name).read_bytes() for folder in folders}) == 1


def _is_left(lived: Lived, topic: str) -> bool:
    return not _is_rebuilt(lived, topic)


def _is_passed_over(lived: Lived, topic: str) -> bool:
    middle, active = Log(lived.sound / f"{topic}-0").middle, Log(lived.sound / f"{topic}-0").active
    lacking = range(int(middle.stem), int(active.stem))
    left = [offset for offset in lived.before[topic].offsets if offset not in lacking]
    return bool(lacking) and lived.after[topic].offsets == left


SEEN: dict[str, Callable[[Lived, str], bool]] = {
    "trusted": _is_as_before,
    "slow_lookups": _is_as_before,
    "rebuilt_at_start": _is_rebuilt,
    "wrong_lookups": _looks_up_wrong,
    "log_end_moves_back": _end_moves_back,
    "falls_back_to_mtime": Lived.first_went,
    "deletes_data": _deletes,
    "expires_early": Lived.first_went,
    "wrong_times": lambda lived, topic: lived.after[topic].by_time != lived.before[topic].by_time,
    "loses_epochs": _loses_epochs,
    "deleted_at_start": _is_gone,
    "never_read": _is_left,
    "not_served": _is_passed_over,
    "not_loaded": _is_passed_over,
    "writes_elsewhere": lambda lived, topic: elsewhere(lived.spoilt[topic].parent).exists(),
}


@pytest.mark.parametrize("topic", KINDS)
def test_the_broker_does_what_is_said(lived: Lived, topic: str) -> None:
    assert SEEN[KINDS[topic].effect](lived, topic), (topic, lived.after[topic], lived.left(topic))


def test_all_logs_roll_and_nothing_throws(lived: Lived) -> None:
    moved = _with_moved_end()
    others = [f"{topic}-0" for topic in topics() if topic not in (*moved, "index-missing")]

    for topic in set(topics()) - set(moved):
        assert lived.appended[topic] == [
            *range(lived.after[topic].end, lived.after[topic].end + 60)
        ]
    names = re.compile(rf"(?<![\w-])({'|'.join(others)})")
    assert [line for line in lived.errors if names.search(line)] == []


def test_without_a_cleaner_nothing_of_a_compacted_topic_goes(lived: Lived) -> None:
    assert lived.left(COMPACTED)[0] == f"{0:020d}.log"


def test_a_killed_broker_cuts_a_log_as_said_and_what_is_preallocated_is_no_finding(
    spark: SparkSession, tmp_path: Path
) -> None:
    checks = {"log.flush.offset.checkpoint.interval.ms": "600000", "log.preallocate": "true"}
    with KafkaBroker(tmp_path, checks) as broker:
        broker.start_broker()
        clients.create(broker.bootstrap, {"few": 1, "cut": 1}, **OF_SEGMENTS)
        sender = clients.producer(broker.bootstrap, batch_num_messages=1, linger_ms=0)
        clients.send(sender, [*sent("few", 0, 3), *sent("cut", 0, 120)])
        broker.kill()
        log = Log(broker.log_dir / "cut-0")
        data = bytearray(log.middle.read_bytes())
        data[20_000] ^= 1
        log.middle.write_bytes(data)
        said = _audit(broker.log_dir)
    with KafkaBroker(tmp_path, checks) as broker:
        broker.start_broker()
        seen = look(broker.bootstrap, ["few", "cut"])
        left = [int(each.stem) for each in sorted((broker.log_dir / "cut-0").glob("*.log"))]

    assert [row for row in said["few"] if row["is_finding"]] == []
    found = {
        row["consequence"]
        for row in said["cut"]
        if row["path"].endswith((".index", ".timeindex")) and log.middle.stem in row["path"]
    }
    assert all(text.endswith("; all segments behind it are deleted") for text in found), said["cut"]
    assert len(found) == 1
    assert seen["few"].end == 3
    assert int(log.middle.stem) < seen["cut"].end < int(log.active.stem)
    assert left == [0, int(log.middle.stem)]
