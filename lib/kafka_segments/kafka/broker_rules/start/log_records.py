"""What goes, stays unseen or comes back in a log that loads.

1. The log starts at the greater of its noted start and its first segment. What is known of the
   start besides is the first entry of ``leader-epoch-checkpoint``, which follows each deletion: it
   is written before the noted start is, so a noted start beyond it was never that of the log.
2. Between two segments nothing is missing, if the first ends where the second begins. Compaction
   alone leaves gaps there.

Source: LogLoader.load, LogSegment.readNextOffset, LeaderEpochFileCache.truncateFromStart (4.3.1).
"""

from collections.abc import Iterator
from itertools import pairwise

from kafka_segments.kafka.broker_rules.gaps import Cleaned, Gap, gap_behind, is_gap_told
from kafka_segments.kafka.broker_rules.start.effects import Effect
from kafka_segments.kafka.broker_rules.start.facts import SegmentEnd, StartLog
from kafka_segments.kafka.broker_rules.start.log_facts import LoadedLog, offset_of
from kafka_segments.kafka.broker_rules.start.replays import kept_snapshots, snapshots_of
from kafka_segments.kafka.broker_rules.start.rules import StartFinding
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS, LOG_START_OFFSET
from kafka_segments.kafka.text.names import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    FolderState,
    file_name,
    is_of_segment,
)


class RecordsOfLog(LoadedLog):
    """Says what becomes of the records."""

    def of_records(self) -> Iterator[StartFinding]:
        """Yield what goes, stays unseen or comes back in a log that loads."""
        is_partial = any(is_of_segment(name) for name, _ in self._log.unread)
        if self._log.unreadable is not None or is_partial:
            return
        yield from self._swaps()
        yield from self._cuts()
        yield from self._starts_beyond()
        yield from self._hidden_start()
        yield from self._gaps()
        yield from self._missing_start()
        yield from self._moved_end()
        yield from self._zeroed()
        yield from self._aborted()
        yield from self._producers()

    def _cuts(self) -> Iterator[StartFinding]:
        """Yield what recovery cuts."""
        for damage in self._log.damages:
            if damage.consequence != "cut":
                continue
            offsets, records = self._lost_by(damage)
            yield self._finding(
                "recovery-cut",
                Effect.CUT,
                file_name(damage.base_offset, LOG_SUFFIX),
                f"{damage.message} (at byte {damage.position})",
                offsets=offsets,
                files=damage.files,
            )._replace(size_bytes=damage.lost_bytes, records=records)

    def _swaps(self) -> Iterator[StartFinding]:
        """Yield swaps that begin after the segments that they replace."""
        log = self._log
        for base, (first, end) in sorted(log.swaps.items()):
            replaced = [name for name in log.deleted if _is_log_between(name, base, end)]
            if self._is_compacted or not replaced or first <= base:
                continue
            name = file_name(base, LOG_SUFFIX) + SWAP_SUFFIX
            yield self._finding(
                "swap-replaces",
                Effect.DELETED,
                name,
                f"it begins at offset {first}, and replaces segments from {base} to {end}",
                offsets=first - base,
                size=sum(log.files[name] for name in replaced),
                files=(*replaced, name),
            )

    def _starts_beyond(self) -> Iterator[StartFinding]:
        log = self._log
        start, end = log.noted.get("log_start_offset", 0), log.end_offset
        if not log.bases or end is None or end >= start:
            return
        names = [file_name(base, LOG_SUFFIX) for base in log.bases]
        first = self._first_of_epochs()
        offsets = end - max(log.bases[0], first if first is not None and first <= end else 0)
        yield self._finding(
            "start-beyond-end",
            Effect.DELETED,
            LOG_START_OFFSET,
            f"the log starts at {start} and ends at {end}: all of its segments are deleted",
            offsets=offsets,
            size=log.size_bytes,
            files=tuple(names),
        )

    def _hidden_start(self) -> Iterator[StartFinding]:
        """Yield offsets that lie below the noted start, and were not deleted (rule 1)."""
        log, first = self._log, self._first_of_epochs()
        noted, end = log.noted.get("log_start_offset"), log.end_offset
        if not log.bases or first is None or noted is None or end is None:
            return
        if log.state != FolderState.LIVE:
            return
        shown = max(first, log.bases[0])
        if shown < noted <= end:
            yield self._finding(
                "start-hidden",
                Effect.UNSEEN,
                LOG_START_OFFSET,
                f"the log starts at {noted}, {LEADER_EPOCHS} has {first}: offsets {shown} to"
                f" {noted - 1} are not served, and retention deletes their segments",
                offsets=noted - shown,
            )

    def _zeroed(self) -> Iterator[StartFinding]:
        """Yield segments that retention takes for those of 1970."""
        log = self._log
        if not self._expires or log.state != FolderState.LIVE:
            return
        for base in log.zeroed:
            end, name = log.ends.get(base), file_name(base, LOG_SUFFIX)
            next_offset = None if end is None else end.next_offset
            yield self._finding(
                "time-index-zeros",
                Effect.DELETED,
                file_name(base, TIME_INDEX_SUFFIX),
                "its last entry is zero: retention.ms takes the segment for one of 1970, and"
                " deletes it at the first check that finds no older one",
                offsets=None if next_offset is None else next_offset - base,
                size=log.files.get(name, 0),
                files=(name,),
            )

    def _gaps(self) -> Iterator[StartFinding]:
        is_certain = self._is_compacted is not None
        for base, gap in gaps_between(self._log):
            if self._is_compacted and not self._is_told(base, gap):
                continue
            yield self._finding(
                "gap",
                Effect.UNSEEN if is_certain else Effect.NOT_KNOWN,
                gap.file,
                gap.found(
                    is_empty=gap.first in self._log.bases,
                    is_folder=gap.file in self._log.folders,
                    is_certain=is_certain,
                ),
                offsets=gap.end - gap.first,
                known=is_certain,
            )

    def _is_told(self, base: int, gap: Gap) -> bool:
        """Tell whether the gap behind a segment of a compacted log is none of the cleaner's."""
        log = self._log
        if gap.file in log.folders:
            return True
        came, end = log.noted.get("cleaner_offset"), log.ends[base].next_offset
        if came is None or end is None:
            return False
        told = is_gap_told(
            log.topic,
            base,
            gap.end,
            records=log.counted.get(base),
            offsets=end - base,
            by=Cleaned(is_noted=True, offset=came),
        )
        return told is True

    def _missing_start(self) -> Iterator[StartFinding]:
        log, first = self._log, self._first_of_epochs()
        if not log.bases:
            return
        noted = log.noted.get("log_start_offset")
        start, base = log.start_offset, log.bases[0]
        believed = first if noted is None else noted if first is None else max(noted, first)
        is_late = first is not None and believed is not None and max(believed, first) < base
        if is_late and believed is not None and self._is_tiered is False:
            yield self._finding(
                "start-missing",
                Effect.UNSEEN,
                "",
                f"the log starts at {believed}, its first segment,"
                f" {file_name(base, LOG_SUFFIX)}, at {base}",
                offsets=base - max(believed, 0),
            )
        elif (
            first is not None
            and log.state == FolderState.LIVE  # another takes its start from the one it copies
            and start < first <= (log.end_offset or 0)
            and self._log.first_epoch is not None
            and self._log.first_epoch >= 0
        ):
            yield self._finding(
                "start-forgotten",
                Effect.BACK,
                LOG_START_OFFSET,
                f"{first - start} deleted offsets come back: the log starts at {start},"
                f" {LEADER_EPOCHS} has {first}",
                offsets=first - start,
            )

    def _moved_end(self) -> Iterator[StartFinding]:
        log, end = self._log, self._log.end_offset
        if end is None or any(damage.consequence == "cut" for damage in log.damages):
            return
        noted = self.noted_end()
        last = self._last()
        torn = self._torn(last, end, noted)
        if torn is not None:
            yield torn
        elif noted is not None and noted > end >= log.noted.get("log_start_offset", 0):
            yield self._ends_before(end, noted, last)

    def _torn(
        self, last: tuple[int, SegmentEnd] | None, end: int, noted: int | None
    ) -> StartFinding | None:
        """Return the finding of a last batch that a clean start leaves torn."""
        if last is None or not self._is_read_back(last[0]):
            return None
        base, found = last
        name = file_name(base, LOG_SUFFIX)
        torn = self._log.files.get(name, 0) - found.valid_bytes
        if torn <= 0 or found.problem is not None or found.last_offset is None:
            return None
        offsets = None if noted is None else max(noted - end, 0)
        return self._finding(
            "torn-end",
            Effect.CUT,
            name,
            f"the last batch is torn at byte {found.valid_bytes}: the log ends at {end}, and new"
            " records are written behind the torn bytes",
            offsets=offsets,
            size=torn,
            known=offsets is not None,
        )

    def _ends_before(
        self, end: int, noted: int, last: tuple[int, SegmentEnd] | None
    ) -> StartFinding:
        is_hidden = last is not None and (last[1].last_offset or -1) >= end
        name = file_name(last[0] if last else end, LOG_SUFFIX)
        if is_hidden and last is not None:
            return self._finding(
                "end-moved-back",
                Effect.UNSEEN,
                file_name(last[0], OFFSET_INDEX_SUFFIX),
                f"its last entry leads beyond the last batch: the log ends at {end}, and new"
                f" records get offsets from {end} on, which are there already",
                offsets=noted - end,
                size=self._log.files.get(name, 0),
            )
        missing = self._missing_logs()
        return self._finding(
            "end-missing",
            Effect.UNSEEN,
            missing[0] if missing else file_name(end, LOG_SUFFIX),
            f"the log ends at {end}, its checkpoints note {noted}",
            offsets=noted - end,
            files=missing,
        )

    def _missing_logs(self) -> tuple[str, ...]:
        """Return the segments that are not there, by the index files that they left."""
        bases = {offset_of(name) for name in self._log.files if name.endswith(INDEX_SUFFIXES)}
        return tuple(
            file_name(base, LOG_SUFFIX)
            for base in sorted(bases - set(self._log.bases))
            if base >= 0
        )

    def _aborted(self) -> Iterator[StartFinding]:
        for base, found in sorted(self._log.transactions.items()):
            if base in self._log.recovered or found.is_refused_version:
                continue
            is_short = found.aborted is not None and found.listed < found.aborted
            if found.problem is None and not is_short:
                continue
            listed = max(found.listed, 0)
            count = "" if found.aborted is None else f" of {found.aborted}"
            reason = found.problem or ("missing" if found.listed < 0 else "too short")
            yield self._finding(
                "aborted-forgotten",
                Effect.FORGOTTEN,
                file_name(base, TXN_INDEX_SUFFIX),
                f"{reason}: {listed}{count} aborted transactions are told to consumers that read"
                " committed records only",
            )

    def _producers(self) -> Iterator[StartFinding]:
        """Yield that the producers are forgotten, as no snapshot tells of them."""
        log, end = self._log, self._log.end_offset
        is_closed = self._is_clean and not log.recovered and log.state != FolderState.DELETE
        if not is_closed or end is None or end <= log.start_offset or self._is_legacy():
            return
        if log.has_producers is not False and not kept_snapshots(
            snapshots_of(log.files), log.bases
        ):
            unread = "" if log.has_producers else "; whether it has producers is not known"
            yield self._finding(
                "producers-forgotten",
                Effect.FORGOTTEN,
                file_name(end, SNAPSHOT_SUFFIX),
                f"missing, as all others: what producers sent last up to {end}, and which of their"
                f" transactions are open{unread}",
            )

    def _is_legacy(self) -> bool:
        """Tell whether the log ends in a format without producers, as before an upgrade."""
        ends = (self._log.ends.get(base) for base in reversed(self._log.bases))
        return next((end.is_legacy for end in ends if end and end.last_offset is not None), False)


def gaps_between(log: StartLog) -> Iterator[tuple[int, Gap]]:
    """Yield what is missing behind segments, by their base offsets.

    Only those whose ends are known count.
    """
    for base, after in pairwise(log.bases):
        end = log.ends.get(base)
        is_hidden = end is not None and (end.last_offset or -1) + 1 >= after
        if end is None or is_hidden:  # its index leads beyond its end
            continue
        gap = gap_behind(end.next_offset, after, log_start=log.start_offset)
        if gap is not None:
            yield base, gap


def _is_log_between(name: str, base: int, end: int) -> bool:
    return name.endswith(LOG_SUFFIX) and base <= offset_of(name) < end
