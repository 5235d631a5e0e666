"""What compiled code writes of records, against the decoder in Python, which Kafka judges."""

import os
import pickle
import random
import struct
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from kafka_segments.engine.tables.catalog import INTERNAL_RECORDS
from kafka_segments.kafka.messages.encoder import encode
from kafka_segments.kafka.messages.layout import versions_of
from kafka_segments.kafka.messages.messages import LAYOUTS
from kafka_segments.kafka.messages.records import REMOTE_LOG_TOPIC, TRANSACTIONS_TOPIC
from kafka_segments.kafka.text.names import METADATA_TOPIC, OFFSETS_TOPIC
from kafka_segments.kafka.wire import message_text
from kafka_segments.verbs.find.internals import record_columns
from kafka_segments.verbs.find.internals.record_columns import (
    GIVEN,
    Decoded,
    RecordColumns,
    decode_row,
)
from support.kafka.kafka_referee import Answer, Referee
from support.logs.spoiled_bytes import spoil

Given = tuple[bytes | None, bytes | None, bool | None, str | None]
ROUNDS = 4
FUZZ_ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "500")) // 100
SMALL = 120
LENGTHS = (  # int16, int32, varints
    *(b"\x7f\xff", b"\x80\x00", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00"),
    *(b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff", b"\x00"),
)
SCHEMA = to_arrow_schema(INTERNAL_RECORDS.schema)
GIVEN_TYPES = (pa.binary(), pa.binary(), pa.bool_(), pa.string())


@pytest.fixture(scope="module")
def drawn(referee: Referee, seed: int) -> dict[str, list[Given]]:
    """Records of every type in every version, by topic."""
    by_topic: dict[str, list[Given]] = {}
    for record in referee.draw_messages(seed, ROUNDS):
        by_topic.setdefault(record["topic"], []).append(_given(record))
    by_topic[OFFSETS_TOPIC] += _groups(random.Random(f"{seed} groups"))
    return by_topic


def _groups(choice: random.Random) -> list[Given]:
    """Groups of consumers whose members wrote a message of each version, also ones to come."""
    versions = versions_of(LAYOUTS["GroupMetadataValue"].versions)
    return [
        _keyed("GroupMetadata", version, {"group": "g"}, _group(choice, of_member))
        for version in versions
        for of_member in range(-1, 6)
    ]


def _group(choice: random.Random, of_member: int) -> dict[str, object]:
    topics = [{"topic": "t", "partitions": [1, 2]}]
    subscription = {"topics": ["t"], "userData": b"u", "ownedPartitions": topics, "rackId": "r"}
    assignment = {"assignedPartitions": topics}
    of_others = {"subscription": b"\0", "assignment": choice.randbytes(12)}
    members = [
        {
            "memberId": "m",
            "clientId": "c",
            "clientHost": "h",
            "subscription": _written("Subscription", of_member, subscription),
            "assignment": _written("Assignment", of_member, assignment),
        },
        {"memberId": "m", "clientId": "c", "clientHost": "h", **of_others},
    ]
    return {"protocolType": "consumer", "protocol": None, "leader": None, "members": members}


def _written(kind: str, version: int, fields: dict[str, object]) -> bytes:
    layout = LAYOUTS[f"ConsumerProtocol{kind}"]
    known = min(max(version, 0), versions_of(layout.versions)[-1])
    return struct.pack(">h", version) + encode(layout, known, fields) + b"behind"


def _given(record: Answer) -> Given:
    key, value = (
        None if record[of] is None else bytes.fromhex(record[of]) for of in ("key", "value")
    )
    return key, value, False, None


def _batch(rows: Sequence[Given]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, GIVEN_TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(GIVEN))


def _decoded(topic: str, rows: Sequence[Given], columns: RecordColumns) -> list[Decoded]:
    pieces = list(columns.decode(topic, _batch(rows)))
    for piece in pieces:
        assert {name: piece[name].type for name in piece} == {
            name: SCHEMA.field(name).type for name in Decoded._fields
        }
    return [
        Decoded(*row)
        for piece in pieces
        for row in zip(*(piece[name].to_pylist() for name in Decoded._fields), strict=True)
    ]


def _in_python(topic: str, rows: Iterable[Given]) -> list[Decoded]:
    return [decode_row(topic, *row) for row in rows]


def _assert_alike(topic: str, rows: Sequence[Given], columns: RecordColumns) -> None:
    found = _decoded(topic, rows, columns)
    for row, compiled, in_python in zip(rows, found, _in_python(topic, rows), strict=True):
        assert compiled == in_python, row


@pytest.fixture
def by_python(monkeypatch: pytest.MonkeyPatch) -> list[Given]:
    """The rows that compiled code leaves."""
    left: list[Given] = []

    def noted(topic: str, *row: object) -> Decoded:
        left.append(row)  # type: ignore[arg-type]
        return decode_row(topic, *row)  # type: ignore[arg-type]

    monkeypatch.setattr(record_columns, "decode_row", noted)
    return left


def test_drawn_records_of_every_type_and_version_are_written_alike(
    drawn: dict[str, list[Given]],
) -> None:
    columns = RecordColumns(SCHEMA)
    for topic, rows in drawn.items():
        _assert_alike(topic, rows, columns)


def _hostile(choice: random.Random, rows: Sequence[Given]) -> list[Given]:
    """Cut and spoil records, and have them name lengths that no record has."""
    bodies = [value for _, value, _, _ in rows if value and len(value) < 2_000]
    hostile: list[Given] = []
    for key, value, _, _ in rows:
        begin = value and value[:2_000]
        hostile += [
            (key, value and value[: choice.randrange(len(value))], False, None),
            (key, begin and spoil(choice, begin, bodies), False, None),
            (key, begin and _with_length(choice, begin), False, None),
            (key and spoil(choice, key, bodies), value, choice.random() < 0.1, None),
            (choice.choice((key, None)), choice.choice((value, None)), None, None),
        ]
    return hostile


def _with_length(choice: random.Random, value: bytes) -> bytes:
    at, length = choice.randrange(len(value)), choice.choice(LENGTHS)
    return value[:at] + length + value[at + len(length) :]


def test_hostile_records_are_written_alike(drawn: dict[str, list[Given]], seed: int) -> None:
    columns = RecordColumns(SCHEMA)
    for number in range(FUZZ_ROUNDS):
        choice = random.Random(f"{seed} columns {number}")
        for topic, rows in drawn.items():
            hostile = _hostile(choice, rows)
            _assert_alike(topic, hostile, columns)


def _in_own_process(rows: dict[str, list[Given]], folder: Path, **variables: str) -> None:
    """Write records alike where each is the only one of its batch, in a new process."""
    file = folder / "rows"
    file.write_bytes(pickle.dumps(rows))
    variables = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-W", "error", __file__, file], env=variables, check=True)


def _small(rows: Sequence[Given]) -> list[Given]:
    """Return those that are soon read by code that is not compiled."""
    return [row for row in rows if len(row[1] or b"") < SMALL]


@pytest.mark.slow
def test_nothing_is_read_or_written_beyond_a_hostile_record(
    drawn: dict[str, list[Given]], seed: int, tmp_path: Path
) -> None:
    """Python refuses places that compiled code would take as they are."""
    choice = random.Random(f"{seed} bounds")
    hostile = {topic: _hostile(choice, _small(rows)) for topic, rows in drawn.items()}

    _in_own_process(hostile, tmp_path, NUMBA_DISABLE_JIT="1")


@pytest.mark.slow
def test_what_another_process_compiled_writes_the_same(
    drawn: dict[str, list[Given]], tmp_path: Path
) -> None:
    for topic, rows in drawn.items():
        _decoded(topic, rows, RecordColumns(SCHEMA))

    _in_own_process(drawn, tmp_path)


def test_rows_without_records_keep_why() -> None:
    rows: list[Given] = [(None, None, None, "why"), (None, None, True, "and so")]

    assert _decoded(OFFSETS_TOPIC, rows, RecordColumns(SCHEMA)) == [
        Decoded(problem="why"),
        Decoded(problem="and so"),
    ]


def _keyed(kind: str, version: int, key: dict[str, object], value: dict[str, object]) -> Given:
    of_key, of_value = LAYOUTS[f"{kind}Key"], LAYOUTS[f"{kind}Value"]
    return (
        struct.pack(">h", of_key.type_id) + encode(of_key, 0, key),
        struct.pack(">h", version) + encode(of_value, version, value),
        *(False, None),
    )


def _commit(group: str = "g", metadata: str = "") -> Given:
    return _keyed(
        "OffsetCommit",
        3,
        {"group": group, "topic": "t", "partition": 2**31 - 1},
        {"offset": -(2**63), "leaderEpoch": -1, "metadata": metadata, "commitTimestamp": 2**63 - 1},
    )


def _change(**fields: object) -> Given:
    layout = LAYOUTS["PartitionChangeRecord"]
    return None, b"\x01\x05\x02" + encode(layout, 2, fields), False, None


def _tagged(fields: bytes) -> Given:
    return None, b"\x01\x05\x02" + bytes(20) + b"\x02" + fields, False, None


USUAL = [
    (OFFSETS_TOPIC, _commit()),
    (OFFSETS_TOPIC, _commit('"a\\b"', "\x7f")),
    (OFFSETS_TOPIC, (_commit()[0], None, False, None)),
    (OFFSETS_TOPIC, (b"\0\0\0\1", b"\0\0\0\0\0\5", True, None)),
    (TRANSACTIONS_TOPIC, (b"\0\0\0\0", b"\0\7\0\0\0\5", True, None)),
    (METADATA_TOPIC, _change(partitionId=3, isr=[], leader=-2, removingReplicas=None)),
    (METADATA_TOPIC, _change(isr=[1, 2], leader=5, lastKnownElr=[7])),
]


@pytest.mark.parametrize(("topic", "row"), USUAL)
def test_what_is_usual_is_written_by_compiled_code(
    topic: str, row: Given, by_python: list[Given]
) -> None:
    assert _decoded(topic, [row], RecordColumns(SCHEMA)) == _in_python(topic, [row])
    assert not by_python


@pytest.mark.parametrize(
    ("topic", "row"),
    [
        (OFFSETS_TOPIC, _commit("é")),
        (OFFSETS_TOPIC, _commit(metadata="\n")),
        (OFFSETS_TOPIC, (b"\0\x77\0\0", b"\0\0", False, None)),
        (OFFSETS_TOPIC, (None, None, False, None)),
        (METADATA_TOPIC, (b"\0\0\0\2", b"\0\0" + bytes(10), True, None)),
        (METADATA_TOPIC, (None, b"\x01\x0e\x00\x01\x05name", False, None)),
        (METADATA_TOPIC, _tagged(b"\1\4\0\0\0\1\1\4\0\0\0\2")),  # twice the same
        (METADATA_TOPIC, _tagged(b"\1\4\0\0\0\1\0\5\2\0\0\0\2")),  # backwards
        (METADATA_TOPIC, _tagged(b"\1\4\0\0\0\1\x7f\1a")),  # unknown
        (METADATA_TOPIC, (None, b"\1\2\0\xc1\xb8\2" + b"a" * 40_000 + bytes(17), False, None)),
        (REMOTE_LOG_TOPIC, (b"k", b"\1\2\0" + bytes(40), False, None)),
    ],
)
def test_what_is_not_is_left_to_python(topic: str, row: Given, by_python: list[Given]) -> None:
    rows = [USUAL[0][1], row, USUAL[0][1]] if topic == OFFSETS_TOPIC else [row]

    assert _decoded(topic, rows, RecordColumns(SCHEMA)) == _in_python(topic, rows)
    assert by_python == [row]


def test_tagged_fields_lie_in_the_order_of_their_definition_and_defaults_are_left_out() -> None:
    layout = LAYOUTS["PartitionRecord"]
    fields = {"replicas": [1], "leaderRecoveryState": 1, "lastKnownElr": [2]}
    value = b"\x01\x03\x02" + encode(layout, 2, fields)
    default = value.replace(b"\x00\x01\x01", b"\x00\x01\x00")
    rows: list[Given] = [(None, value, False, None), (None, default, False, None)]

    found = _decoded(METADATA_TOPIC, rows, RecordColumns(SCHEMA))

    assert found == _in_python(METADATA_TOPIC, rows)
    assert [
        '"leader":-1,"leaderRecoveryState":1,"leaderEpoch"' in (row.value_json or "")
        for row in found
    ] == [True, False]


def test_text_that_has_no_room_comes_in_several_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_columns, "_TEXT_BYTES", 1_000)
    rows = [_commit(f"group-{number}", "m" * number) for number in range(0, 600, 40)]

    pieces = list(RecordColumns(SCHEMA).decode(OFFSETS_TOPIC, _batch(rows)))

    assert len(pieces) > 3
    assert _decoded(OFFSETS_TOPIC, rows, RecordColumns(SCHEMA)) == _in_python(OFFSETS_TOPIC, rows)


if __name__ == "__main__":
    for name, given in pickle.loads(Path(sys.argv[1]).read_bytes()).items():
        usual = RecordColumns(SCHEMA)
        for number, record in enumerate(given):
            record_columns._TEXT_BYTES = 100 + 7 * number % 900  # most have no room in so little
            _assert_alike(name, [record], RecordColumns(SCHEMA) if number % 2 else usual)
    stats = getattr(message_text.write_texts, "stats", None)  # none: it is not compiled
    assert stats is None or (stats.cache_hits and not stats.cache_misses)
