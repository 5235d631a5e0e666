"""What is known of a log at its start beside single files: where it ends, and what it holds.

The log ends where the start reads it to end. What is known of the end besides are three notes:
recovery point, high watermark, and the newest ``.snapshot``, which a clean stop leaves at the end.
Records are missing where two of them are beyond it; one alone may be wrong itself. After a hard
stop only the high watermark, which is at most some seconds old, tells of the end.

Source: LogLoader.load, ProducerStateManager (4.3.1).
"""

from collections.abc import Iterable

from kafka_segments.kafka.broker_rules.start.effects import Effect
from kafka_segments.kafka.broker_rules.start.facts import FoundDamage, SegmentEnd, StartLog
from kafka_segments.kafka.broker_rules.start.rules import StartFinding
from kafka_segments.kafka.text.checkpoints import LOG_START_OFFSET
from kafka_segments.kafka.text.names import (
    CLEANED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TXN_INDEX_SUFFIX,
)

INDEX_BYTES = 10_485_760  # log.index.size.max.bytes
_NUMBERED = (LOG_SUFFIX, *INDEX_SUFFIXES, SNAPSHOT_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)


class LoadedLog:
    """A log of a log directory, of which a start decides.

    ``is_needed``: its directory is needed (``effect_at``). ``is_compacted``: there is evidence of
    it, or, False, against it; None: there is neither. ``is_tiered``: its older segments are in a
    remote store; None: not known. ``index_bytes``: segment.index.bytes. ``expires``: retention by
    time may delete its segments.
    """

    def __init__(
        self,
        log_dir: str,
        log: StartLog,
        *,
        is_clean: bool,
        is_needed: bool,
        is_compacted: bool | None,
        is_tiered: bool | None = None,
        index_bytes: int = INDEX_BYTES,
        expires: bool = True,
    ) -> None:
        self._log_dir, self._log = log_dir, log
        self._is_clean, self._is_needed = is_clean, is_needed
        self._is_compacted, self._is_tiered = is_compacted, is_tiered
        self._index_bytes, self._expires = index_bytes, expires

    def lost(self) -> tuple[int, int | None, int | None]:
        """Return bytes, offsets and records of the whole log; None: not known."""
        end = self._log.end_offset
        if end is None:
            return self._log.size_bytes, None, None
        offsets = max(end - self._log.start_offset, 0)
        return self._log.size_bytes, offsets, self._records(offsets)

    def _records(self, offsets: int) -> int | None:
        """Return how many records so many offsets hold: without compaction and markers, as many."""
        log = self._log
        has_markers = any(end.has_transactions for end in log.ends.values()) or any(
            name.endswith(TXN_INDEX_SUFFIX) for name in log.files
        )
        return None if self._is_compacted or has_markers else offsets

    def _last(self) -> tuple[int, SegmentEnd] | None:
        bases = self._log.bases
        found = self._log.ends.get(bases[-1]) if bases else None
        return None if found is None else (bases[-1], found)

    def _is_read_back(self, base: int) -> bool:
        """Tell whether the end of the last segment is read without being recovered before."""
        return base not in self._log.recovered

    def _first_of_epochs(self) -> int | None:
        epochs = self._log.epochs.value or []
        return int(epochs[0].start_offset) if epochs else None

    def noted_end(self) -> int | None:
        """Return the log's end by what was noted of it besides; None: not known."""
        snapshots = [offset_of(name) for name in self._log.files if name.endswith(SNAPSHOT_SUFFIX)]
        notes = [
            note
            for note in (
                self._log.noted.get("recovery_point"),
                self._log.noted.get("high_watermark"),
                max(snapshots, default=None),
            )
            if note is not None
        ]
        if not self._is_clean:
            return self._log.noted.get("high_watermark")
        notes.sort(reverse=True)
        return notes[1] if len(notes) > 1 else None

    def _lost_by(self, damage: FoundDamage) -> tuple[int | None, int | None]:
        """Return how many offsets and records go; None: not known.

        Headers in the bytes that go name some. Where these end early, as in zeros that stand for
        pages never written, the high watermark knows of more.
        """
        told, end, noted = damage.lost_records, damage.next_offset, self.noted_end()
        if noted is None or end is None or not self._log.ends_at(damage):
            return told, told
        offsets = noted - end
        return (offsets, self._records(offsets)) if offsets > (told or 0) else (told, told)

    def _finding(
        self,
        rule: str,
        effect: Effect,
        name: str,
        found: str,
        *,
        line: int | None = None,
        exception: str = "",
        offsets: int | None = 0,
        size: int = 0,
        files: tuple[str, ...] = (),
        known: bool = True,
    ) -> StartFinding:
        return StartFinding(
            rule,
            effect,
            self._log_dir,
            "" if name == LOG_START_OFFSET else self._log.folder,
            name,
            found if name != LOG_START_OFFSET else f"{self._log.folder}: {found}",
            line,
            exception,
            size if known else None,
            offsets if known else None,
            self._records(offsets) if known and offsets is not None else None,
            files,
        )


def odd_names(names: Iterable[str]) -> list[str]:
    """Return the names at which ``LogFileUtils.offsetFromFileName`` throws."""
    return sorted(
        name for name in names if name.endswith(_NUMBERED) and not _is_long(name.partition(".")[0])
    )


def _is_long(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isdecimal() and -(2**63) <= int(text) < 2**63


def offset_of(name: str) -> int:
    """Return the offset that a file's name begins with; -1: it begins with none."""
    digits = name.partition(".")[0]
    return int(digits) if _is_long(digits) else -1
