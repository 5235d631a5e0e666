"""What a broker of each release does with a file it finds: the tables of 3.6, 4.6 and 6.2.

Judgements are made here, no file is read.
"""

import struct
from typing import Any

import numpy as np
import pytest

from kafka_segments.errors import UsageError
from kafka_segments.kafka.broker_rules.index_files.judgement import (
    OFFSET_INDEX,
    TIME_INDEX,
    TXN_INDEX,
    IndexKind,
    IndexVerdict,
    Judgement,
    LogFacts,
)
from kafka_segments.kafka.broker_rules.index_files.segment import judge_segment
from kafka_segments.kafka.broker_rules.versions import parse_version
from kafka_segments.verbs.judge.audit.decide.consequences import (
    Consequence,
    Effect,
    SegmentState,
    consequence_of,
    is_finding,
    orphan_consequence,
    why_recovered,
)
from kafka_segments.verbs.judge.audit.decide.odd_files import judge_odd_file
from kafka_segments.verbs.judge.audit.decide.tiered import consequence_anywhere

LOADED = SegmentState(is_active=False, is_open=False, is_recovered=False, has_timestamps=True)


def _judged(
    verdict: IndexVerdict, kind: IndexKind | None = None, suffix: str = OFFSET_INDEX, **more: Any
):
    return Judgement(suffix, verdict, kind, "a message", **more)


def _of(judgement: Judgement, version: str = "4.3", **state: Any) -> Consequence:
    release, found = parse_version(version), LOADED._replace(**state)
    return consequence_of(judgement, found, release, why_recovered([judgement], found, release))


@pytest.mark.parametrize(
    ("offsets", "refused"),
    [
        # entries of an offset index -> the releases that refuse it
        ([(0, 0)], ("0.8.2", "1.1.1")),  # last offset = base offset
        ([(1, 100)], ()),
        ([(5, 100), (0, 0)], ("0.8.2", "1.1.1")),
        ([], ()),
    ],
)
def test_which_releases_refuse_an_offset_index(
    offsets: list[tuple[int, int]], refused: tuple[str, ...]
) -> None:
    found = b"".join(struct.pack(">ii", *entry) for entry in offsets)

    assert _refusing(found) == refused
    assert _refusing(found + b"\1") == RELEASES[:4]


RELEASES = ("0.8.2", "1.1.1", "2.0", "2.2.2", "2.3", "4.3")


def _refusing(found: bytes) -> tuple[str, ...]:
    none = np.empty((0, 2), np.int64)
    log = LogFacts(1_000, 1_100, 10_000, 9_999, 4096, none, none)
    files = {OFFSET_INDEX: found, TIME_INDEX: None, TXN_INDEX: None}
    below = judge_segment(files, log, lambda: [])[0].refused_below
    return tuple(one for one in RELEASES if below is not None and parse_version(one) < below)


@pytest.mark.parametrize(
    ("version", "index", "time_index", "txn_index"),
    [
        ("0.8.2.2", Effect.FAILS, Effect.IGNORED, Effect.IGNORED),
        ("0.9", Effect.REBUILT, Effect.IGNORED, Effect.IGNORED),
        ("0.10.0.1", Effect.REBUILT, Effect.IGNORED, Effect.IGNORED),
        ("0.10.1", Effect.REBUILT, Effect.REBUILT, Effect.IGNORED),
        ("0.10.2.2", Effect.REBUILT, Effect.REBUILT, Effect.IGNORED),
        ("0.11", Effect.REBUILT, Effect.REBUILT, Effect.REBUILT),
        ("2.2.2", Effect.REBUILT, Effect.REBUILT, Effect.REBUILT),
        ("2.3", Effect.WRONG_LOOKUPS, Effect.WRONG_TIMES, Effect.WRONG_LOOKUPS),
        ("4.3", Effect.WRONG_LOOKUPS, Effect.WRONG_TIMES, Effect.WRONG_LOOKUPS),
    ],
)
def test_a_file_that_fails_the_sanity_check_of_2_2(
    version: str, index: Effect, time_index: Effect, txn_index: Effect
) -> None:
    found = [
        _of(
            _judged(IndexVerdict.CORRUPT, IndexKind.OUT_OF_ORDER, suffix, refused_below=(2, 3)),
            version,
        )
        for suffix in (OFFSET_INDEX, TIME_INDEX, TXN_INDEX)
    ]

    assert [one.effect for one in found] == [index, time_index, txn_index]
    action = "move the .index away before the start"
    assert (found[0].action == action) == (index == Effect.FAILS)
    if Effect.IGNORED in (time_index, txn_index):
        assert found[2].text == f"Kafka {version} knows no .txnindex files"


def test_why_a_segment_is_recovered() -> None:
    wrong = {"refused_below": (2, 3)}
    index = _judged(IndexVerdict.CORRUPT, **wrong)
    time_index = _judged(IndexVerdict.CORRUPT, suffix=TIME_INDEX, **wrong)
    missing, none = _judged(IndexVerdict.MISSING), _judged(IndexVerdict.MISSING, suffix=TIME_INDEX)

    def why(version: str, *judgements: Judgement, **state: Any) -> str | None:
        return why_recovered(judgements, LOADED._replace(**state), parse_version(version))

    assert why("4.3", index, time_index, is_recovered=True) == "the stop was not clean"
    assert why("4.3", missing, time_index) == "its .index is missing"
    assert why("4.3", none) is None
    assert why("0.11", none) is None
    assert why("2.2", index, time_index) == "its .index fails the sanity check"
    assert why("2.2", time_index) == "its .timeindex fails the sanity check"
    assert why("2.3", index, time_index) is None
    assert why("0.10.0.1", time_index) is None


MOST = 10 * 1024 * 1024 // 8
FULL = _judged(IndexVerdict.PADDED, entries=MOST)
CASES: list[tuple[Judgement, dict[str, Any], Effect, str]] = [
    (_judged(IndexVerdict.IDENTICAL), {}, Effect.TRUSTED, "and right"),
    (_judged(IndexVerdict.VALID, IndexKind.SHIFTED), {}, Effect.TRUSTED, "and right"),
    (_judged(IndexVerdict.UNJUDGED, IndexKind.LOG_DAMAGE), {}, Effect.UNKNOWN, "a message"),
    (_judged(IndexVerdict.NEVER_WRITTEN, IndexKind.EMPTY), {}, Effect.TRUSTED, "right where"),
    (_judged(IndexVerdict.STALE, IndexKind.LOG_GREW), {"is_active": True}, Effect.SLOW, "read far"),
    (_judged(IndexVerdict.CORRUPT, IndexKind.LENGTH), {}, Effect.SLOW, "cut entry"),
    (_judged(IndexVerdict.NEVER_WRITTEN, IndexKind.ALL_ZERO), {}, Effect.SLOW, "name byte 0"),
    (FULL, {"is_active": True}, Effect.SLOW, "counts as full"),
    (FULL, {}, Effect.SLOW, "name byte 0"),
    (FULL._replace(entries=MOST - 1), {"is_active": True}, Effect.SLOW, "name byte 0"),
    (_judged(IndexVerdict.STALE, IndexKind.BEYOND_LOG), {}, Effect.WRONG_LOOKUPS, "wrong bytes"),
    (_judged(IndexVerdict.STALE), {"is_active": True}, Effect.LOSES_LOG_END, "there already"),
    (_judged(IndexVerdict.CORRUPT), {}, Effect.WRONG_LOOKUPS, "wrong bytes"),
    (
        _judged(IndexVerdict.CORRUPT, IndexKind.NO_BATCH),
        {"is_active": True},
        Effect.LOSES_LOG_END,
        "there already",
    ),
]
TIMES: list[tuple[IndexVerdict, IndexKind | None, int, dict[str, Any], Effect]] = [
    (IndexVerdict.MISSING, None, 0, {}, Effect.FALLS_BACK_TO_MTIME),
    (IndexVerdict.NEVER_WRITTEN, IndexKind.EMPTY, 0, {}, Effect.FALLS_BACK_TO_MTIME),
    (IndexVerdict.MISSING, None, 0, {"has_timestamps": False}, Effect.TRUSTED),
    (IndexVerdict.NEVER_WRITTEN, IndexKind.EMPTY, 0, {"has_timestamps": False}, Effect.TRUSTED),
    (IndexVerdict.STALE, IndexKind.NOT_CLOSED, 5, {}, Effect.EXPIRES_EARLY),
    (IndexVerdict.STALE, IndexKind.BEYOND_LOG, 5, {}, Effect.WRONG_TIMES),
    (IndexVerdict.CORRUPT, IndexKind.LENGTH, 5, {}, Effect.WRONG_TIMES),
    (IndexVerdict.PADDED, IndexKind.TRAILING_ZEROS, 10, {}, Effect.DELETES_DATA),
    (IndexVerdict.PADDED, IndexKind.TRAILING_ZEROS, 9, {"is_active": True}, Effect.DELETES_DATA),
    (IndexVerdict.NEVER_WRITTEN, IndexKind.ALL_ZERO, 10, {"is_active": True}, Effect.DELETES_DATA),
]


@pytest.mark.parametrize(("judgement", "state", "effect", "words"), CASES)
def test_an_offset_index_that_is_taken_as_it_is(
    judgement: Judgement, state: dict[str, Any], effect: Effect, words: str
) -> None:
    found = _of(judgement, **state)

    assert found.effect == effect
    assert words in found.text
    assert ("counts as full" in found.text) == (words == "counts as full")
    is_wrong = effect not in (Effect.TRUSTED, Effect.UNKNOWN)
    assert found.text.startswith("taken as it is, unchecked: ") == is_wrong
    assert ("put the rebuilt file in its place" in found.action) == is_wrong
    assert is_finding(judgement, found) == (effect != Effect.TRUSTED)


@pytest.mark.parametrize(("verdict", "kind", "entries", "state", "effect"), TIMES)
def test_a_time_index_that_is_taken_as_it_is(
    verdict: IndexVerdict,
    kind: IndexKind | None,
    entries: int,
    state: dict[str, Any],
    effect: Effect,
) -> None:
    judgement = _judged(verdict, kind, TIME_INDEX, entries=entries)

    found = _of(judgement, segment_index_bytes=12 * 10 + 11, **state)

    assert found.effect == effect
    assert found.text.startswith("taken as it is") == (verdict != IndexVerdict.MISSING)
    assert ("counts as full" in found.text) == ("is_active" in state)  # 9 of 10 entries: one early


def test_what_a_running_broker_keeps_is_no_finding() -> None:
    padded = _judged(IndexVerdict.PADDED, IndexKind.PREALLOCATED)

    assert _of(padded, is_open=True).effect == Effect.TRUSTED
    assert _of(padded, is_open=True, is_recovered=True).effect == Effect.TRUSTED
    assert _of(padded).effect == Effect.SLOW
    for suffix in (OFFSET_INDEX, TIME_INDEX):  # few records, and the broker was killed
        zeros = _judged(IndexVerdict.NEVER_WRITTEN, IndexKind.ALL_ZERO, suffix)
        found = _of(zeros, is_open=True, is_active=True, is_recovered=True)
        assert found.effect == Effect.TRUSTED
        assert not is_finding(zeros, found)
    assert _of(_judged(IndexVerdict.CORRUPT), is_open=True).effect == Effect.WRONG_LOOKUPS


def test_a_damaged_log_is_copied_before_its_index_is_mended() -> None:
    wrong, txn_index = (
        _judged(IndexVerdict.CORRUPT),
        _judged(IndexVerdict.CORRUPT, suffix=TXN_INDEX),
    )
    cut = _of(wrong, is_recovered=True, log_damage="bad CRC")

    assert (cut.effect, cut.action) == (Effect.REBUILT, "copy the .log before the broker starts")
    assert cut.text.endswith(
        "the stop was not clean; the log is cut there: bad CRC; all segments behind it are deleted"
    )
    active = _of(wrong, is_recovered=True, is_active=True, log_damage="bad CRC")
    assert active.text.endswith("the log is cut there: bad CRC")
    assert _of(wrong, is_recovered=True).action == "nothing"
    assert _of(wrong, log_damage="bad CRC").action.startswith("copy the .log first, it is damaged")
    assert "move the segment's .index away" in _of(txn_index).action


def test_what_a_start_mends_is_a_finding_only_where_the_log_is_cut() -> None:
    for verdict in IndexVerdict:
        judgement = _judged(verdict)
        found = _of(judgement, is_recovered=True)
        assert (found.effect, found.action) == (Effect.REBUILT, "nothing")
        assert not is_finding(judgement, found)
        cut = _of(judgement, is_recovered=True, log_damage="bad CRC")
        is_right = verdict in (IndexVerdict.IDENTICAL, IndexVerdict.VALID)
        assert is_finding(judgement, cut) == (not is_right)
    assert orphan_consequence((3, 9, 1)).text == "Kafka 3.9.1 deletes it at start"


@pytest.mark.parametrize("text", ["", "4", "4.", "4.x", "4.3.1.0.0", "4.٣", "-4.3"])
def test_a_release_is_two_to_four_numbers(text: str) -> None:
    with pytest.raises(UsageError, match="a release such as"):
        parse_version(text)
    assert parse_version("0.10.2.1") == (0, 10, 2, 1)
    assert parse_version("4.3") == (4, 3)


@pytest.mark.parametrize(
    ("suffix", "version", "effect"),
    [
        (OFFSET_INDEX, "0.8.2", Effect.FAILS),
        (TIME_INDEX, "0.10.0", Effect.IGNORED),
        (TIME_INDEX, "0.10.1", Effect.FAILS),
        (TXN_INDEX, "0.10.2", Effect.IGNORED),
        (TXN_INDEX, "0.11.0", Effect.FAILS),
    ],
)
def test_a_folder_in_the_place_of_an_index_fails_the_releases_that_know_it(
    suffix: str, version: str, effect: Effect
) -> None:
    judgement = judge_odd_file(suffix, IndexKind.FOLDER, "a folder")

    found = consequence_anywhere(judgement, LOADED, parse_version(version), None)

    assert found.effect == effect
