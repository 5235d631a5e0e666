"""Where offsets went that a real broker expired, deleted, or deleted with their topic or group."""

import time
from itertools import chain
from pathlib import Path

import pytest

from kafka_segments.engine.frames.local_rows import arrow_schema
from kafka_segments.engine.rows.read_options import parse_options
from kafka_segments.engine.rows.segment_rows import SegmentRows
from kafka_segments.files.folders.walk import ListedSegment
from kafka_segments.files.segments.bounds import Bounds
from kafka_segments.verbs.find.lag.decide.facts import GroupRecords
from kafka_segments.verbs.find.lag.decide.whereabouts import Explained, Rules, explain
from kafka_segments.verbs.find.lag.group_records import Record, put_in_order
from support.kafka.kafka_broker import KafkaBroker
from support.kafka.kafka_clients import Sent, create, producer, send
from support.kafka.kafka_referee import RefereeError
from support.kafka.waiting import wait_until

pytestmark = pytest.mark.slow

MINUTE_MS = 60_000
PATIENCE_SECONDS = 120.0
PROPERTIES = {
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "1000",
}
END = 9
GROUPS = ("simple", "classic", "modern", "alive", "removed", "forgotten", "topical", "fresh")
Key = tuple[str, str]
"""A group, and a log as topic-partition."""


class Broker(KafkaBroker):
    """A broker with an Admin and clients in its JVM."""

    def connect(self) -> None:
        self._ask("cluster_connect", bootstrap=self.bootstrap)

    def change(self, change: str, **fields: object) -> None:
        self._ask("cluster_change", change=change, **fields)

    def act(self, action: str, **fields: object) -> None:
        self._ask("cluster_client", action=action, **fields)

    def offsets(self) -> dict[Key, int]:
        """Give what groups have committed, as Admin answers."""
        rows = self._ask("cluster_answers")["group_offsets"]
        return {(row["group"], f"{row['topic']}-{row['partition']}"): row["offset"] for row in rows}

    def read_and_leave(self, group: str, protocol: str, *, leaves: bool = True) -> None:
        names = {"member": group, "group": group, "protocol": protocol}
        self.act("join", **names, topics=["kept"], instance=None)
        self.act("poll", members=[group], records=END, rounds=30, commits=True)
        if leaves:
            self.act("leave", member=group)


def _commit(broker: Broker, group: str, **offsets: int) -> None:
    named = {name.replace("_", "-"): offset for name, offset in offsets.items()}
    broker.change("commit", group=group, offsets=named)


def _live(broker: Broker) -> tuple[dict[Key, int], int]:
    """Let offsets go in all ways; give what Admin answers then, and when the topic went."""
    create(broker.bootstrap, {"kept": 2, "gone": 1})
    send(producer(broker.bootstrap), [Sent("kept", 0, 1_000, b"x") for _ in range(END)])
    broker.connect()
    _commit(broker, "simple", kept_0=3)
    broker.read_and_leave("classic", "classic")
    broker.read_and_leave("modern", "consumer")
    broker.read_and_leave("alive", "classic", leaves=False)
    for group in ("removed", "forgotten", "topical"):
        _commit(broker, group, kept_0=4, gone_0=0)
    broker.change("delete_offsets", group="removed", partitions=["kept-0"])
    broker.change("delete_group", group="forgotten")
    deleted_ms = int(time.time() * 1000)
    broker.change("delete_topics", topics=["gone"])
    time.sleep(20)
    _commit(broker, "classic", kept_0=5)  # the group stays empty: it goes with the others
    wait_until(
        lambda: _have_expired(broker),
        "all but those that are read have expired",
        patience_seconds=PATIENCE_SECONDS,
        step=1,
    )
    _commit(broker, "fresh", kept_0=6)
    return broker.offsets(), deleted_ms


def _have_expired(broker: Broker) -> bool:
    try:
        return {group for group, _ in broker.offsets()} == {"alive"}
    except RefereeError:  # a group went between Admin's two questions
        return False


def _records(log_dir: Path) -> list[tuple[bytes, Record]]:
    """Read the group's records of the disk, each with the group's name."""
    columns = "offset,timestamp_ms,producer_id,is_control,key,value"
    options = parse_options({"path": "/", "rows": "records", "columns": columns, "check": "full"})
    reader = SegmentRows(options, Bounds(), arrow_schema(options.schema()))
    (log,) = (log_dir / "__consumer_offsets-0").glob("*.log")
    size = log.stat().st_size
    segment = ListedSegment(str(log.parent), "", log.name, "__consumer_offsets", 0, 0, None, size)
    found = []
    for row in chain.from_iterable(batch.to_pylist() for batch in reader.segment(segment)):
        key, value = row["key"], row["value"]
        assert not row["is_control"]
        record = Record(row["offset"], row["timestamp_ms"], None, None, key, value)
        found.append((key[4 : 4 + int.from_bytes(key[2:4], "big")], record))
    return found


def test_the_explanation_says_of_each_offset_what_became_of_it(tmp_path: Path) -> None:
    with Broker(tmp_path, PROPERTIES) as broker:
        broker.start_broker()
        answers, deleted_ms = _live(broker)
        broker.stop_broker()
    records, rules = _records(broker.log_dir), Rules(MINUTE_MS, {"gone": [deleted_ms]})
    found: dict[Key, Explained] = {}
    for group in GROUPS:
        put = put_in_order(record for name, record in records if name == group.encode())
        read = GroupRecords(put.commits, put.pending, put.states)
        assert not put.problems
        for place in put.commits:
            found[group, "{}-{}".format(*place)] = explain(place, read, rules)

    told = {key: one.where.value for key, one in found.items()}
    assert told == {
        ("simple", "kept-0"): "expired",
        **{("classic", f"kept-{number}"): "expired" for number in (0, 1)},
        **{("modern", f"kept-{number}"): "expired" for number in (0, 1)},
        **{("alive", f"kept-{number}"): "committed" for number in (0, 1)},
        ("removed", "kept-0"): "deleted",
        ("removed", "gone-0"): "deleted with its topic",
        **{("forgotten", name): "deleted with its group" for name in ("kept-0", "gone-0")},
        ("topical", "kept-0"): "expired",
        ("topical", "gone-0"): "deleted with its topic",
        ("fresh", "kept-0"): "committed",
    }
    now = {key: one.current for key, one in found.items() if one.current is not None}
    assert now == answers
    late = found["classic", "kept-0"]
    assert late.last is not None
    assert late.last.committed == 5
    assert late.gone_ms is not None
    assert late.aged_from_ms is not None
    assert late.gone_ms - late.aged_from_ms >= MINUTE_MS > late.gone_ms - late.last.commit_ms
