"""Judge the index files found beside a segment by what its log gives.

A file is compared with the bytes that recovery writes. Where they differ, its entries are compared
with the log's own batches: brokers of other releases and settings write other entries that are as
right. From 2.3 on no broker checks these files at start.

1. ``identical``: the bytes are equal.
2. ``padded``: zeros follow entries that are right, as preallocation leaves them.
3. ``never_written``: the file is empty or holds zeros alone, and the log gives entries.
4. ``valid``: all entries are right, but stand at other places or have other offsets.
5. ``stale``: entries lie beyond the log, or end long before it; they belong to another state of it.
6. ``corrupt``: the entries cannot have been written for this log.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

from kafka_segments.errors import CorruptIndexError
from kafka_segments.kafka.broker_rules.versions import Version
from kafka_segments.kafka.index.segment.offset_index import check_offset_index, decode_offset_index
from kafka_segments.kafka.index.segment.recovered_segment import Entries, SegmentRecovery
from kafka_segments.kafka.index.segment.time_index import check_time_index
from kafka_segments.kafka.text.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from kafka_segments.kafka.wire.batches import Batches

OFFSET_INDEX, TIME_INDEX, TXN_INDEX = OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
LOG, SNAPSHOT = ".log", ".snapshot"
V2_0, V2_3, V4_4 = (2, 0), (2, 3), (4, 4)
KNOWN_TXN_INDEX = (0, 11)
"""The first release that knows ``.txnindex`` files."""
EVERY_VERSION = (2**31,)


class IndexVerdict(StrEnum):
    """What an index file is, compared with its log."""

    IDENTICAL = "identical"
    VALID = "valid"
    PADDED = "padded"
    NEVER_WRITTEN = "never_written"
    STALE = "stale"
    MISSING = "missing"
    CORRUPT = "corrupt"
    ORPHAN = "orphan"
    UNJUDGED = "unjudged"


class IndexKind(StrEnum):
    """The kind of a verdict: what the file shows."""

    SPARSER = "sparser"
    SHIFTED = "shifted"
    OTHER_INTERVAL = "other_interval"
    FIRST_OFFSET = "first_offset"
    OFFSET_OF_MAX = "offset_of_max_timestamp"
    PREALLOCATED = "preallocated"
    TRAILING_ZEROS = "trailing_zeros"
    ALL_ZERO = "all_zero"
    EMPTY = "empty"
    BEYOND_LOG = "beyond_log"
    LOG_GREW = "log_grew"
    NOT_CLOSED = "not_closed"
    LENGTH = "length"
    OUT_OF_ORDER = "out_of_order"
    NO_BATCH = "no_batch"
    WRONG_OFFSET = "wrong_offset"
    UNTRUE = "untrue"
    BAD_CONTENT = "bad_content"
    NO_SEGMENT = "no_segment"
    LOG_DAMAGE = "log_damage"
    UNREADABLE = "unreadable"
    FOLDER = "folder"
    SPECIAL = "special"
    ENDLESS_LINK = "endless_link"
    DANGLING_LINK = "dangling_link"
    LINK = "link"
    NO_MANIFEST = "no_manifest"
    NO_LOG = "no_log"
    SECOND_COPY = "second_copy"
    DISAGREES = "disagrees"
    GAP = "gap"
    OVERLAP = "overlap"


@dataclass(frozen=True)
class LogFacts:
    """A segment as recovery found it; the entries are those of ``SegmentRecovery``.

    ``is_open``: it is the active segment of a broker that runs, or that was not stopped cleanly.
    So its index files may be preallocated.
    """

    base_offset: int
    next_offset: int
    valid_bytes: int
    max_timestamp: int
    index_interval_bytes: int
    offset_entries: Entries
    time_entries: Entries
    is_open: bool = False

    @classmethod
    def of(
        cls,
        recovery: SegmentRecovery,
        *,
        base_offset: int,
        index_interval_bytes: int,
        is_open: bool = False,
    ) -> Self | None:
        """Return what recovery found; None: a broker does not load the segment."""
        if recovery.offset_entries is None or recovery.time_entries is None:
            return None
        return cls(
            base_offset=base_offset,
            next_offset=recovery.next_offset,
            valid_bytes=recovery.valid_bytes,
            max_timestamp=recovery.max_timestamp,
            index_interval_bytes=index_interval_bytes,
            offset_entries=recovery.offset_entries,
            time_entries=recovery.time_entries,
            is_open=is_open,
        )


class Opinion(NamedTuple):
    """A verdict on entries alone."""

    verdict: IndexVerdict
    kind: IndexKind | None
    message: str


class Judgement(NamedTuple):
    """A verdict on one file; ``suffix`` names it.

    ``entries`` is the number of entries in the file, ``rebuilt_entries`` that of the rebuilt file;
    None: not known. ``refused_below``: releases below this one find at start that the file is
    broken; None: no release does. ``fails_from``: it ends the start of this one and later ones;
    None: of none.
    """

    suffix: str
    verdict: IndexVerdict
    kind: IndexKind | None
    message: str
    entries: int | None = None
    rebuilt_entries: int | None = None
    refused_below: Version | None = None
    fails_from: Version | None = None

    def ends_start(self, version: Version) -> bool:
        """Tell whether a release ends at the file as it starts."""
        return self.fails_from is not None and version >= self.fails_from


WalkLog = Callable[[], Iterable[Batches]]
"""Yields the log's batches from the start, in columns. It is called only where entries differ."""


class EntryRules(NamedTuple):
    """How the two indexes differ, for ``judge_entries``."""

    suffix: str
    entry_bytes: int
    decode: Callable[..., Entries]
    encode: Callable[..., bytes]
    judge: Callable[[Entries, LogFacts, WalkLog], Opinion]


def judge_entries(
    found: bytes | None, rules: EntryRules, log: LogFacts, walk: WalkLog
) -> Judgement:
    """Judge an offset or a time index; None: there is no such file."""
    rebuilt = log.offset_entries if rules.suffix == OFFSET_INDEX else log.time_entries
    if found is None:
        message = f"no {rules.suffix} file; rebuilt it has {len(rebuilt)} entries"
        return Judgement(rules.suffix, IndexVerdict.MISSING, None, message, None, len(rebuilt))
    opinion = _opinion(found, rebuilt, rules, log, walk)
    refused = _refused_below(found, rules.suffix, log.base_offset)
    entries = len(found) // rules.entry_bytes
    return Judgement(rules.suffix, *opinion, entries, len(rebuilt), refused)


def _opinion(
    found: bytes, rebuilt: Entries, rules: EntryRules, log: LogFacts, walk: WalkLog
) -> Opinion:
    expected = rules.encode(rebuilt, base_offset=log.base_offset)
    same = Opinion(IndexVerdict.IDENTICAL, None, "the bytes that recovery writes")
    if found == expected:
        return same
    if not found:
        message = f"0 bytes, where the log gives {len(rebuilt)} entries"
        return Opinion(IndexVerdict.NEVER_WRITTEN, IndexKind.EMPTY, message)
    is_prefix = found.startswith(expected) and not any(found[len(expected) :])
    if is_prefix and (expected or log.is_open):
        return _padded(same, len(found) - len(expected), log)
    if not any(found):
        message = f"{len(found)} bytes, all zero, where the log gives {len(rebuilt)} entries"
        return Opinion(IndexVerdict.NEVER_WRITTEN, IndexKind.ALL_ZERO, message)
    written = len(found.rstrip(b"\0"))
    whole = -(-written // rules.entry_bytes) * rules.entry_bytes
    if whole > len(found):
        message = (
            f"{len(found)} bytes, no multiple of {rules.entry_bytes}: its last entry is cut short"
        )
        return Opinion(IndexVerdict.CORRUPT, IndexKind.LENGTH, message)
    entries = rules.decode(found[:whole], base_offset=log.base_offset)
    opinion = rules.judge(entries, log, walk)
    return opinion if whole == len(found) else _padded(opinion, len(found) - whole, log)


def _padded(opinion: Opinion, zeros: int, log: LogFacts) -> Opinion:
    if opinion.verdict not in (IndexVerdict.IDENTICAL, IndexVerdict.VALID):
        return opinion._replace(message=f"{opinion.message}; {zeros} zero bytes follow")
    what = f"{opinion.message}, then {zeros} zero bytes"
    if log.is_open:
        message = f"{what}: preallocated, as a running broker keeps its active segment's"
        return Opinion(IndexVerdict.PADDED, IndexKind.PREALLOCATED, message)
    return Opinion(IndexVerdict.PADDED, IndexKind.TRAILING_ZEROS, f"{what}: never trimmed")


def _refused_below(found: bytes, suffix: str, base_offset: int) -> Version | None:
    """Return the release below which the sanity check at start refuses the file; None: none does.

    Source: OffsetIndex.sanityCheck, TimeIndex.sanityCheck; not run at start from 2.3 on.
    """
    check = check_offset_index if suffix == OFFSET_INDEX else check_time_index
    try:
        check(found, base_offset=base_offset)
    except CorruptIndexError:
        return V2_3
    if suffix == OFFSET_INDEX:
        entries = decode_offset_index(found, base_offset=base_offset)
        if len(entries) and entries[-1, 0] <= base_offset:
            return V2_0
    return None


def difference(found: Entries, rebuilt: Entries, names: tuple[str, str]) -> str:
    """Return in words which entry is the first that differs, and how."""
    shared = min(len(found), len(rebuilt))
    unequal = (found[:shared] != rebuilt[:shared]).any(axis=1).nonzero()[0]
    row = int(unequal[0]) if len(unequal) else shared
    return (
        f"{len(found)} entries, {len(rebuilt)} rebuilt; the first that differs is entry {row}:"
        f" {_entry(found, row, names)}, rebuilt {_entry(rebuilt, row, names)}"
    )


def _entry(entries: Entries, row: int, names: tuple[str, str]) -> str:
    if row >= len(entries):
        return "none"
    return f"({names[0]} {entries[row, 0]}, {names[1]} {entries[row, 1]})"
