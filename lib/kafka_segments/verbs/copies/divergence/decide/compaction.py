"""Whether compaction may have taken what a copy of a log lacks.

A gap is no evidence for its own cause. Something else has to tell that the log was compacted.
"""

from collections.abc import Iterable, Sequence

from kafka_segments.verbs.copies.divergence.decide.copies import UNBOUNDED, Copy
from kafka_segments.verbs.copies.divergence.decide.keyed import Keyed, OwnKeys

_MOST_KEYS = 1_000_000  # 100 MB in memory; of more keys than that none is looked for again


class Compaction:
    """Tells what compaction may have taken.

    1. A ``cleaner-offset-checkpoint`` that names the log says up to where it was compacted. That
       of any copy counts: a follower that was made anew gets a compacted log without one.
    2. Else the topic's ``cleanup.policy`` says whether it may have been.
    3. Else it was not, if a copy has a checkpoint, or lies in tiered storage.
    4. Else it may have been if a copy has more gaps than the one that is judged.
    5. If no checkpoint says up to where, the copy itself does: the cleaner leaves no key twice, and
       none that is null. What is missing behind the first such record was not taken by it.

    Source: LogCleanerManager.doneCleaning, Cleaner.shouldRetainRecord (4.3.1).

    Args:
        copies: all copies of the log.
        keys: reads keys.
    """

    def __init__(self, copies: Sequence[Copy], keys: OwnKeys) -> None:
        noted = [copy.cleaner_offset for copy in copies if copy.cleaner_offset is not None]
        self._copies = {copy.name: copy for copy in copies}
        self._keys = keys
        self._ends: dict[str, int] = {}
        self.noted_end = max(noted, default=None)
        self.is_inferred = self.noted_end is None and _may_be_compacted(copies)

    def may_have_taken(self, name: str, offset: int) -> bool:
        """Tell whether compaction may have taken an offset that a copy lacks."""
        return offset < self.end_of(name)

    def end_of(self, name: str) -> int:
        """Return the offset up to which a copy may have been compacted; -1: it was not."""
        if self.noted_end is not None:
            return self.noted_end
        if not self.is_inferred:
            return -1
        if name not in self._ends:
            start = self._copies[name].start
            own = (one for one in self._keys.own(name, start) if one.offset >= start)
            self._ends[name] = _first_repeated(own)
        return self._ends[name]

    def end(self) -> int:
        """Return the offset up to which some copy may have been compacted; -1: none was."""
        if self.noted_end is not None:
            return self.noted_end
        thinned = [copy for copy in self._copies.values() if copy.gaps and self.is_inferred]
        return max((min(copy.end, self.end_of(copy.name)) for copy in thinned), default=-1)


def _may_be_compacted(copies: Sequence[Copy]) -> bool:
    """Tell whether a log of which no checkpoint tells may have been compacted."""
    policies = {copy.is_compact for copy in copies if copy.is_compact is not None}
    if policies:
        return True in policies
    if any(copy.has_cleaner_checkpoint or copy.is_tiered for copy in copies):
        return False
    return any(copy.gaps > 1 for copy in copies)


def _first_repeated(records: Iterable[Keyed]) -> int:
    """Return the offset of the first record whose key comes again or is null."""
    seen: set[int] = set()
    for one in records:
        if one.is_commit is not None or one.key is None:  # a marker, or it cannot be decoded
            continue
        if one.key == 0 or one.key in seen:
            return one.offset
        if len(seen) == _MOST_KEYS:
            break
        seen.add(one.key)
    return UNBOUNDED
