"""What a log gives, built as a build does it and by Kafka's classes, and where the two differ."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from kafka_segments.kafka.index.log.loading import RecoveryMode
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS
from support.kafka.kafka_referee import Referee, RefereeError
from support.logs.built_alone import Built, build_alone
from support.logs.great_lengths import says_great_length
from support.logs.mutated_logs import MutatedLog, draw
from support.logs.mutation_case import LogSettings
from support.logs.small_pieces import small_pieces
from support.logs.strategies import MAX_INT64

Files = dict[str, bytes]
_FOLDER = "t-0"
_OF_A_SEGMENT = (".index", ".timeindex", ".txnindex")


class KafkaBuild(NamedTuple):
    """Kafka's files by name; ``threw`` where it does not load the log, ``facts`` by segment."""

    files: Files
    threw: str | None
    facts: dict[int, dict[str, Any]]
    mode: RecoveryMode
    log_start_offset: int = 0
    log_end_offset: int | None = None
    logs: tuple[bytes, ...] = ()

    @property
    def is_load(self) -> bool:
        return self.mode != RecoveryMode.SEGMENT


class Difference(NamedTuple):
    """What differs in one mode, and the name of the documented reason, if it is one."""

    drawn: MutatedLog
    mode: RecoveryMode
    told: list[str]
    explanation: str | None

    def __str__(self) -> str:
        drawn = self.drawn
        return f"{drawn.seed} {drawn.number} {drawn.kind} {self.mode}: {'; '.join(self.told[:4])}"


def built_by_us(partition: Path, scratch: Path, mode: RecoveryMode, settings: LogSettings) -> Built:
    """Build a log by a build's own steps; an empty ``.txnindex`` is none."""
    recovery = RecoveryOptions(
        index_interval_bytes=settings.index_interval_bytes,
        segment_index_bytes=settings.segment_index_bytes,
    )
    return build_alone(
        partition,
        scratch,
        mode,
        now_ms=settings.now_ms,
        recovery=recovery,
        log_start_offset=settings.log_start_offset,
    )


def built_by_kafka(
    referee: Referee, partition: Path, mode: RecoveryMode, settings: LogSettings
) -> KafkaBuild:
    """Recover or load a log in place."""
    if mode == RecoveryMode.LOADER_UNCLEAN:
        for log in partition.glob("*.log"):
            log.with_suffix(".index").touch()
            log.with_suffix(".timeindex").touch()
    intervals = {
        "index_interval_bytes": settings.index_interval_bytes,
        "segment_index_bytes": settings.segment_index_bytes,
        "now_ms": settings.now_ms,
    }
    try:
        if mode == RecoveryMode.SEGMENT:
            facts = {fact["baseOffset"]: fact for fact in referee.recover(partition, **intervals)}
            return KafkaBuild(_files_in(partition), None, facts, mode)
        loaded = referee.load_log(
            partition, is_clean=False, log_start_offset=settings.log_start_offset, **intervals
        )
    except RefereeError as error:
        return KafkaBuild(_files_in(partition), str(error), {}, mode)
    bases = {f"{base_offset:020d}" for base_offset in loaded["base_offsets"]}
    files = {
        name: data
        for name, data in _files_in(partition).items()
        if name[:20] in bases or not name.endswith(_OF_A_SEGMENT)
    }
    return KafkaBuild(
        files,
        None,
        {base_offset: {} for base_offset in loaded["base_offsets"]},
        mode,
        settings.log_start_offset,
        loaded["log_end_offset"],
    )


def _files_in(folder: Path) -> Files:
    """Read what is beside the logs; an empty ``.txnindex`` is none."""
    if not folder.is_dir():
        return {}
    return {
        file.name: data
        for file in folder.iterdir()
        if file.suffix in (*_OF_A_SEGMENT, ".snapshot") or file.name == LEADER_EPOCHS
        if (data := _read(file)) or file.suffix != ".txnindex"
    }


def _read(file: Path) -> bytes:
    """Read a file; of one that Kafka has preallocated and never trimmed only that it is so."""
    return b"preallocated" if file.stat().st_size > 2**20 else file.read_bytes()


def differences(
    referee: Referee, drawn: MutatedLog, scratch: Path, mode: RecoveryMode
) -> Iterator[Difference]:
    """Build a log both ways below ``scratch``, and say where the two differ."""
    try:
        partition = drawn.write(scratch / "ours" / _FOLDER)
        with small_pieces(random.Random(f"{drawn.seed} {drawn.number} pieces")):
            ours = built_by_us(partition, scratch, mode, drawn.settings)
        kafkas = built_by_kafka(
            referee, drawn.write(scratch / "kafkas" / _FOLDER), mode, drawn.settings
        )._replace(logs=(*drawn.segments.values(),))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if told := told_differences(ours, kafkas):
        yield Difference(drawn, mode, told, explanation(ours, kafkas))


def compared(
    referee: Referee, folder: Path, seed: int, numbers: Iterable[int]
) -> Iterator[Difference]:
    """Draw logs by their numbers, and say where builds of them in the three modes differ."""
    for number in numbers:
        drawn = draw(seed, number)
        for mode in RecoveryMode:
            try:
                yield from differences(referee, drawn, folder / f"{number}-{mode}", mode)
            except Exception as error:
                error.add_note(f"log {number} of seed {seed}, mode {mode}")
                raise


def compared_apart(folder: Path, seed: int, numbers: Sequence[int]) -> list[Difference]:
    """Compare with a referee of its own, as a process beside others."""
    with Referee(scratch=folder) as referee:
        return [*compared(referee, folder, seed, numbers)]


def told_differences(ours: Built, kafkas: KafkaBuild) -> list[str]:
    """Say where two builds differ, in the terms of the mode that they were made in."""
    if kafkas.threw is not None:
        return _of_refused(ours, kafkas)
    return _of_load(ours, kafkas) if kafkas.is_load else _by_segment(ours, kafkas)


def explanation(ours: Built, kafkas: KafkaBuild) -> str | None:
    """Name what is documented of a difference; None where nothing is."""
    return next((name for name, holds in EXPLAINED.items() if holds(ours, kafkas)), None)


def _memory_ran_out(ours: Built, kafkas: KafkaBuild) -> bool:
    """Tell whether Kafka's memory ran out where a compressed batch says a length that big."""
    ran_out = kafkas.threw is not None and "OutOfMemoryError" in kafkas.threw
    return ran_out and any(map(says_great_length, kafkas.logs))


def _ends_below_zero(ours: Built, kafkas: KafkaBuild) -> bool:
    """Tell whether Kafka has begun anew: the log's end lies behind offset 2^63 - 1."""
    start = kafkas.log_start_offset
    is_new = kafkas.is_load and [*kafkas.facts] == [start] and kafkas.log_end_offset == start
    return is_new and any(row.recovery.next_offset < 0 for row in ours.rows.values())


def _is_not_recovered(ours: Built, kafkas: KafkaBuild) -> bool:
    """Tell whether a segment named 2^63 - 1 is damaged: an unclean start neither looks at it
    nor removes it, as Kafka takes the segments below that offset.
    """
    return kafkas.is_load and MAX_INT64 in damaged(ours)


def _has_negative_name(ours: Built, kafkas: KafkaBuild) -> bool:
    """Tell whether Kafka has split a segment and named a piece by an offset below 0."""
    is_split = DamageKind.OFFSET_OVERFLOW in damaged(ours).values()
    return kafkas.is_load and is_split and any(base_offset < 0 for base_offset in kafkas.facts)


def _is_read_twice(ours: Built, kafkas: KafkaBuild) -> bool:
    """Tell whether Kafka has read a split segment and its pieces: transactions begin twice."""
    is_split = DamageKind.OFFSET_OVERFLOW in damaged(ours).values()
    threw = kafkas.threw or ""
    is_missing = kafkas.mode == RecoveryMode.LOADER_MISSING
    return is_missing and is_split and "which was not started" in threw


def _first_try_shows(ours: Built, kafkas: KafkaBuild) -> bool:
    """Tell whether a log with a split segment does not load, and all that differs is the
    transactions that Kafka's first try left.
    """
    is_split = DamageKind.OFFSET_OVERFLOW in damaged(ours).values()
    if not kafkas.is_load or not is_split or kafkas.threw is None:
        return False
    differing = [name for name in ours.files if _differs(name, ours, kafkas)]
    in_both = [name for name in differing if name.endswith(_OF_A_SEGMENT)]
    return LEADER_EPOCHS not in ours.files and all(name.endswith(".txnindex") for name in in_both)


def _first_reading_shows(ours: Built, kafkas: KafkaBuild) -> bool:
    """Tell whether Kafka has failed while it opened the segments of a log whose offsets go back
    from one segment to the next, and only transactions differ.
    """
    if kafkas.mode != RecoveryMode.LOADER_MISSING or kafkas.threw is None:
        return False
    ends = [(base, row.recovery.next_offset) for base, row in sorted(ours.rows.items())]
    goes_back = any(end > base for (_, end), (base, _) in pairwise(ends))
    in_both = ours.files.keys() & kafkas.files
    differing = [name for name in in_both if _differs(name, ours, kafkas)]
    only_transactions = all(name.endswith(".txnindex") for name in differing)
    return goes_back and only_transactions and LEADER_EPOCHS not in ours.files


EXPLAINED: dict[str, Callable[[Built, KafkaBuild], bool]] = {
    "Kafka takes memory for what a length in the log says, and has not as much": _memory_ran_out,
    "the log ends behind offset 2^63 - 1: Kafka removes all segments": _ends_below_zero,
    "a piece of a split segment has a name below 0": _has_negative_name,
    "an unclean start leaves a segment named 2^63 - 1 alone": _is_not_recovered,
    "the first try of a load that splits a segment shows": _first_try_shows,
    "a load without index files reads a split segment and its pieces": _is_read_twice,
    "a load that fails while it opens segments has read less of those before": _first_reading_shows,
}
"""Differences that docs/log-recovery.md tells of, and what shows each of them."""


def damaged(ours: Built) -> dict[int, str]:
    """Give the kind of damage of each segment that has some."""
    return {
        base_offset: str(row.damage.kind)
        for base_offset, row in ours.rows.items()
        if row.damage is not None
    }


def _by_segment(ours: Built, kafkas: KafkaBuild) -> list[str]:
    return [told for base_offset in kafkas.facts for told in _of_segment(ours, kafkas, base_offset)]


def _of_segment(ours: Built, kafkas: KafkaBuild, base_offset: int) -> list[str]:
    fact = kafkas.facts[base_offset]
    names = [f"{base_offset:020d}{suffix}" for suffix in _OF_A_SEGMENT]
    if "threw" in fact:
        found = [f"{name}: Kafka throws {fact['threw']}" for name in names if name in ours.files]
        if base_offset not in damaged(ours):
            found.append(f"{base_offset}: no damage, Kafka throws {fact['threw']}")
        return found
    mine = ours.rows[base_offset].recovery
    numbers = {
        "validBytes": mine.valid_bytes,
        "truncatedBytes": mine.truncated_bytes,
        "nextOffset": mine.next_offset,
        "largestTimestamp": mine.max_timestamp,
        "offsetOfLargestTimestamp": mine.offset_of_max_timestamp,
        "firstBatchTimestamp": _first_timestamp(mine.first_batch_timestamp),
    }
    return _unequal(names, ours, kafkas) + [
        f"{base_offset}: {name} is {number}, Kafka's {fact[name]}"
        for name, number in numbers.items()
        if number != fact[name]
    ]


def _first_timestamp(timestamp: int) -> int:
    """Give -1 where Kafka says that there is none: so it does of one of 2^63 - 1, too."""
    return timestamp if 0 <= timestamp < MAX_INT64 else -1


def _of_load(ours: Built, kafkas: KafkaBuild) -> list[str]:
    if LEADER_EPOCHS not in ours.files:
        return [f"not loaded ({damaged(ours)}), Kafka loads it"]
    found = _unequal(sorted(ours.files.keys() | kafkas.files), ours, kafkas)
    gone = ours.rows.keys() - kafkas.facts.keys() - damaged(ours).keys()
    return found + [f"{base_offset}: no damage, Kafka removes it" for base_offset in sorted(gone)]


def _of_refused(ours: Built, kafkas: KafkaBuild) -> list[str]:
    if LEADER_EPOCHS in ours.files:
        return [f"loaded, Kafka throws {kafkas.threw}"]
    if not damaged(ours):
        return [f"no damage, Kafka throws {kafkas.threw}"]
    return _unequal([name for name in ours.files if name.endswith(_OF_A_SEGMENT)], ours, kafkas)


def _differs(name: str, ours: Built, kafkas: KafkaBuild) -> bool:
    return ours.files.get(name) != kafkas.files.get(name)


def _unequal(names: list[str], ours: Built, kafkas: KafkaBuild) -> list[str]:
    return [
        f"{name}: {_told(ours.files.get(name))}, Kafka's {_told(kafkas.files.get(name))}"
        for name in names
        if _differs(name, ours, kafkas)
    ]


def _told(data: bytes | None) -> str:
    return "none" if data is None else f"{len(data)} bytes {data.hex()[:80]}"
