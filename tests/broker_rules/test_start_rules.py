"""The table of a broker's start, and the decisions by it that need no file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_segments.errors import CorruptTextError
from kafka_segments.kafka.broker_rules.gaps import Cleaned, Gap, is_gap_told
from kafka_segments.kafka.broker_rules.start.effects import Effect, effect_at
from kafka_segments.kafka.broker_rules.start.facts import (
    Bad,
    Parsed,
    SegmentEnd,
    StartDir,
    StartLog,
)
from kafka_segments.kafka.broker_rules.start.files import check_meta, check_quorum_state
from kafka_segments.kafka.broker_rules.start.logs import LogDecision
from kafka_segments.kafka.broker_rules.start.metadata_facts import CheckpointId, begins_anew
from kafka_segments.kafka.broker_rules.start.node import decide_node
from kafka_segments.kafka.broker_rules.start.rules import RULES
from kafka_segments.kafka.broker_rules.start.state import NodeFacts
from kafka_segments.kafka.text.checkpoints import EpochStart
from kafka_segments.kafka.text.names import FolderState
from support.house.start_page import table

DOCS = Path(__file__).parents[2] / "docs" / "start.md"
META = {"version": "1", "cluster.id": "c", "node.id": "1"}


def test_the_page_has_the_table() -> None:
    assert table() in DOCS.read_text()


def test_each_row_names_its_source_and_a_step() -> None:
    for name, rule in RULES.items():
        assert rule.step, name
        assert rule.source or name == "not-read", name
        assert rule.effect is not None or rule.exception, name


@pytest.mark.parametrize(
    ("exception", "is_needed", "effect"),
    [
        ("IOException", False, Effect.WITHOUT),
        ("MalformedInputException", False, Effect.WITHOUT),
        ("IOException", True, Effect.ENDS),
        ("NumberFormatException", False, Effect.ENDS),
        ("OutOfMemoryError", False, Effect.ENDS),
    ],
)
def test_an_io_exception_costs_a_directory_any_other_the_broker(
    exception: str, is_needed: bool, effect: Effect
) -> None:
    assert effect_at(exception, is_needed=is_needed) == effect


@pytest.mark.parametrize(
    "properties",
    [
        {**META, "version": "2"},
        {**META, "node.id": "one"},
        {**META, "directory.id": "???"},
        {"version": "1", "node.id": "1"},
        {"version": "1", "cluster.id": "c"},
    ],
)
def test_properties_that_kafka_refuses(properties: dict[str, str]) -> None:
    assert isinstance(check_meta(properties), Bad)


def _quorum(**changes: object) -> str:
    """Return a quorum-state as a 4.3.1 node with static voters writes it, but for the changes."""
    sound = {
        **{"clusterId": "", "leaderId": 1, "leaderEpoch": 1, "votedId": -1, "appliedOffset": 0},
        **{"currentVoters": [{"voterId": 1}], "data_version": 0},
    }
    return json.dumps({**sound, **changes})


def test_an_unknown_field_of_a_quorum_state_is_read_over() -> None:
    assert check_quorum_state(_quorum(more=1))["leaderId"] == 1


@pytest.mark.parametrize(
    ("text", "exception"),
    [
        ("", "EOFException"),
        ("\0\0", "JsonParseException"),
        ('{"leaderId":1,"lea', "JsonEOFException"),
        ('{"leaderId":"\x01"}', "JsonParseException"),
        ("[]", "IOException"),
        ('{"leaderId":1}', "IOException"),
        ('{"leaderId":1,"data_version":7}', "IllegalStateException"),
        ('{"leaderId":1,"data_version":1}', "RuntimeException"),
        (_quorum(leaderEpoch=2**32), "NumberFormatException"),
        (_quorum(leaderId=1.0), "NumberFormatException"),
        (_quorum(currentVoters=None), "NullPointerException"),
        (_quorum(currentVoters=[{}]), "RuntimeException"),
        (_quorum(currentVoters=[{"voterId": "a"}]), "NumberFormatException"),
    ],
)
def test_a_quorum_state_that_ends_the_broker(text: str, exception: str) -> None:
    with pytest.raises(CorruptTextError) as raised:
        check_quorum_state(text)

    assert raised.value.exception == exception


def test_what_follows_the_first_line_of_a_quorum_state_is_not_read() -> None:
    line = '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"x","data_version":1}'

    assert check_quorum_state(f"{line}\n{line} x")["leaderId"] == 1


@pytest.mark.parametrize(
    ("newest", "end", "anew"),
    [
        (None, CheckpointId(0, 0), False),
        (CheckpointId(82, 1), CheckpointId(111, 1), False),
        (CheckpointId(500, 1), CheckpointId(111, 1), True),
        (CheckpointId(82, 2), CheckpointId(111, 1), True),
        (CheckpointId(500, 1), CheckpointId(111, 2), False),
    ],
)
def test_a_metadata_log_begins_anew_at_a_checkpoint_beyond_it(
    newest: CheckpointId | None, end: CheckpointId, anew: bool
) -> None:
    assert begins_anew(newest, end=end) == anew


LEGACY_END = SegmentEnd(240, 600, 239, is_legacy=True)


def _log(**changes: object) -> StartLog:
    """Return a log of four segments of 60 offsets that starts at 30, as a clean stop leaves it."""
    bases = (0, 60, 120, 180)
    files = {f"{base:020d}{suffix}": 600 for base in bases for suffix in (".log", ".index")}
    values: dict[str, object] = {
        "files": {**files, f"{240:020d}.snapshot": 10},
        "bases": bases,
        "epochs": Parsed(True, [EpochStart(0, 30)]),
        "ends": {base: SegmentEnd(base + 60, 600, base + 59) for base in bases},
        "first_epoch": 0,
        "noted": {"recovery_point": 240, "high_watermark": 240, "log_start_offset": 30},
    }
    return StartLog("plain-0", "plain", 0, FolderState.LIVE, **{**values, **changes})  # type: ignore[arg-type]


def _rules(log: StartLog, *, is_clean: bool = True) -> list[tuple[str, int | None]]:
    decision = LogDecision(
        "/d", log, is_clean=is_clean, is_needed=False, is_compacted=False, is_tiered=False
    )
    found = [*decision.of_files(), *decision.of_records()]
    return [(finding.rule, finding.offsets) for finding in found]


NOTED = {"recovery_point": 240, "high_watermark": 240, "log_start_offset": 30}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"noted": {**NOTED, "recovery_point": 9999}}, []),
        ({"noted": {**NOTED, "high_watermark": 9999}}, []),
        ({"noted": {**NOTED, "log_start_offset": 240}}, [("start-hidden", 210)]),
        ({"noted": {**NOTED, "log_start_offset": 31}}, [("start-hidden", 1)]),
        ({"noted": {**NOTED, "log_start_offset": 240}, "epochs": Parsed()}, []),
        ({"noted": {**NOTED, "log_start_offset": 9999}}, [("start-beyond-end", 210)]),
        ({"noted": {**NOTED, "log_start_offset": -7}}, [("start-forgotten", 30)]),
        ({"bases": (0, 60, 120)}, [("end-missing", 60)]),
        ({"bases": (60, 120, 180)}, [("start-missing", 30)]),
        ({"bases": (0, 120, 180)}, [("gap", 60)]),
        ({"bases": ()}, [("end-missing", 210)]),
        ({"zeroed": (60, 180)}, [("time-index-zeros", 60), ("time-index-zeros", 60)]),
    ],
)
def test_what_goes_of_a_log(
    changes: dict[str, object], found: list[tuple[str, int | None]]
) -> None:
    assert _rules(_log(**changes)) == found


@pytest.mark.parametrize(
    ("files", "changes", "is_told"),
    [
        ((), {}, True),
        ((60,), {}, False),
        ((210,), {}, False),
        ((150,), {}, True),  # removed as a stray one
        ((), {"noted": {**NOTED, "log_start_offset": 240}, "epochs": Parsed()}, False),
        ((), {"has_producers": False}, False),
        ((), {"has_producers": None}, True),
        ((), {"recovered": (60,)}, False),
        ((), {"state": FolderState.DELETE}, False),
        ((), {"ends": {180: LEGACY_END}}, False),
        ((), {"ends": {120: LEGACY_END, 180: SegmentEnd(240, 600, 239)}}, True),
    ],
)
def test_a_clean_start_without_any_snapshot_forgets_the_producers(
    files: tuple[int, ...], changes: dict[str, object], is_told: bool
) -> None:
    names = {f"{base:020d}.log": 600 for base in (0, 60, 120, 180)}
    snapshots = {f"{offset:020d}.snapshot": 10 for offset in files}
    producers = {"has_producers": True, **changes}
    log = replace(_log(files={**names, **snapshots}), **producers)  # type: ignore[arg-type]

    def is_forgotten(*, is_clean: bool) -> bool:
        return ("producers-forgotten", 0) in _rules(log, is_clean=is_clean)

    assert is_forgotten(is_clean=True) is is_told
    assert not is_forgotten(is_clean=False)


def test_a_future_log_takes_its_start_from_the_one_that_it_copies() -> None:
    noted = {"recovery_point": 240, "high_watermark": 240}

    assert _rules(_log(noted=noted)) == [("start-forgotten", 30)]
    assert _rules(replace(_log(noted=noted), state=FolderState.FUTURE)) == []


def test_only_the_newest_snapshot_is_opened() -> None:
    older, newest = f"{60:020d}.snapshot", f"{300:020d}.snapshot"

    assert _rules(_log(folders=(older, newest))) == [("folder-for-file", 0)]
    assert _rules(_log(folders=(older,))) == []


def test_after_a_hard_stop_the_high_watermark_alone_tells_of_the_end() -> None:
    behind = {"recovery_point": 120, "high_watermark": 240, "log_start_offset": 30}
    log = _log(noted=behind, recovered=(120, 180))

    assert _rules(log, is_clean=False) == []
    assert _rules(_log(noted={**behind, "high_watermark": 300}), is_clean=False) == [
        ("end-missing", 60)
    ]


def test_a_directory_that_throws_is_gone_and_the_last_one_ends_the_broker() -> None:
    bad = {"recovery-point-offset-checkpoint": Parsed(True, None, Bad("IOException", "x", 1))}
    meta = Parsed(True, META)
    spoilt, sound = StartDir("/b", meta, checkpoints=bad), StartDir("/a", meta)

    both, alone = decide_node(NodeFacts([sound, spoilt])), decide_node(NodeFacts([spoilt]))

    assert (both.starts, both.without) == (True, ("/b",))
    assert (alone.starts, alone.without) == (False, ())


NAMED_TO = Cleaned(is_noted=True, offset=100)
NOT_NAMED, NO_CHECKPOINT = Cleaned(is_noted=True), Cleaned(is_noted=False)


@pytest.mark.parametrize(
    ("topic", "base", "records", "by", "is_told"),
    [
        ("orders", 0, 60, NOT_NAMED, True),
        ("orders", 0, 40, NOT_NAMED, False),  # copied from where it was compacted
        ("orders", 0, None, NOT_NAMED, True),
        ("orders", 0, 60, NO_CHECKPOINT, None),
        ("orders", 0, 59, NO_CHECKPOINT, False),
        ("orders", 0, None, NO_CHECKPOINT, False),
        ("orders", 0, 60, Cleaned(is_noted=True, offset=200), False),  # up to the next segment
        ("orders", 0, 40, NAMED_TO, True),
        ("orders", 110, 60, NAMED_TO, True),
        ("orders", 110, 40, NAMED_TO, False),
        ("__consumer_offsets", 0, 60, NOT_NAMED, True),
        ("__consumer_offsets", 0, 40, NOT_NAMED, False),
        ("__consumer_offsets", 0, None, NOT_NAMED, False),
        ("__consumer_offsets", 0, 40, NAMED_TO, True),
        ("__share_group_state", 0, 40, NO_CHECKPOINT, True),
    ],
)
def test_a_gap_is_told_unless_compaction_made_it(
    topic: str, base: int, records: int | None, by: Cleaned, is_told: bool | None
) -> None:
    assert is_gap_told(topic, base, 200, records=records, offsets=60, by=by) is is_told


def test_a_gap_says_what_lies_there() -> None:
    gap = Gap(60, 120)

    assert gap.found().endswith("a segment is missing")
    assert gap.found(is_empty=True).endswith(f"{60:020d}.log has no batch")
    assert gap.found(is_folder=True).endswith(f"{60:020d}.log is a folder")
    assert "or compaction removed" in gap.found(is_certain=False)


def test_a_broker_that_ends_goes_on_without_nothing() -> None:
    bad = {"recovery-point-offset-checkpoint": Parsed(True, None, Bad("IOException", "x", 1))}
    meta = Parsed(True, META)
    spoilt = StartDir("/b", meta, checkpoints=bad, odd_folders=("x",))

    node = decide_node(NodeFacts([StartDir("/a", meta), spoilt]))

    assert (node.starts, node.without) == (False, ())


def test_a_file_that_this_process_may_not_read_is_not_known_and_no_lost_directory() -> None:
    denied = Bad("AccessDeniedException", "Permission denied")
    bad = {"recovery-point-offset-checkpoint": Parsed(True, None, denied)}
    meta = Parsed(True, META)
    spoilt = StartDir("/b", meta, checkpoints=bad)

    node = decide_node(NodeFacts([StartDir("/a", meta), spoilt]))

    assert (node.starts, node.without) == (None, ())
    assert [(one.rule, one.effect, one.place) for one in node.findings] == [
        ("unreadable", Effect.NOT_KNOWN, "recovery-point-offset-checkpoint")
    ]


@pytest.mark.parametrize(
    ("name", "starts", "effect"),
    [
        ("cleaner-offset-checkpoint", True, Effect.UNCLEANED),
        ("replication-offset-checkpoint", None, Effect.NOT_KNOWN),
    ],
)
def test_a_broker_is_up_when_it_reads_a_number_that_is_none(
    name: str, starts: bool | None, effect: Effect
) -> None:
    spoilt = Parsed(True, None, Bad("NumberFormatException", "'9223372036854775808'", 3))
    meta = Parsed(True, META)
    dirs = [StartDir("/a", meta), StartDir("/b", meta, checkpoints={name: spoilt})]

    node = decide_node(NodeFacts(dirs))

    assert (node.starts, node.without) == (starts, ())
    assert [(one.rule.endswith("-number"), one.effect) for one in node.findings] == [(True, effect)]


@pytest.mark.parametrize(
    ("came", "counted", "folders", "is_told"),
    [
        (None, 60, (), False),  # that the cleaner was here is not known
        (0, 60, (), True),
        (0, 59, (), False),  # another broker's cleaner left it so
        (0, None, (), False),
        (10, None, (), True),
        (119, None, (), True),
        (120, 60, (), False),
        (None, None, (f"{60:020d}.log",), True),
    ],
)
def test_a_gap_of_a_compacted_log_is_told_behind_where_its_cleaner_came(
    came: int | None, counted: int | None, folders: tuple[str, ...], is_told: bool
) -> None:
    noted = NOTED if came is None else {**NOTED, "cleaner_offset": came}
    log = _log(
        bases=(0, 120, 180),
        noted=noted,
        counted={} if counted is None else {0: counted},
        folders=folders,
    )
    log = replace(log, topic="__consumer_offsets")
    decision = LogDecision(
        "/d", log, is_clean=True, is_needed=False, is_compacted=True, is_tiered=False
    )

    found = [finding for finding in decision.of_records() if finding.rule == "gap"]

    assert [(one.effect, one.offsets) for one in found] == [(Effect.UNSEEN, 60)] * is_told


def test_records_that_may_be_missing_are_no_doubt_of_the_start() -> None:
    with_gap = StartDir("/a", Parsed(True, META), logs=(_log(bases=(0, 120, 180)),))

    node = decide_node(NodeFacts([with_gap]))

    assert node.starts is True
    assert [(one.rule, one.effect) for one in node.findings] == [("gap", Effect.NOT_KNOWN)]


def test_an_empty_folder_beside_log_directories_may_be_a_new_disk() -> None:
    node = decide_node(NodeFacts([StartDir("/a", Parsed(True, META))], beside=("/b",)))

    assert node.starts is True
    assert any(note.startswith("/b: empty, and no meta.properties") for note in node.notes)
