"""The records of a log or of its mirror, in columns."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafka_segments.verbs.copies.divergence.decide.keyed import Keyed

Int64s = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


class MirroredLog(NamedTuple):
    """The records of a log or of its mirror that clients wrote, in the order of their offsets.

    Attributes:
        start: log start offset. end: offset behind the last record or marker.
        offsets: of each record.
        digests: of its key, value and headers.
        keys: a digest of its key; 0: it has none.
        tombstones: whether it has a key and no value.
        aborted: whether its transaction was aborted.
        timestamps: of its producer (CreateTime), in ms.
        stamped: whether it has one: not with LogAppendTime, nor in format v0.
        holes: where offsets begin that it lacks.
        gaps: places inside its segments where it lacks some.
        compacted_until: offset up to which it may have been compacted; -1: it was not.
    """

    start: int
    end: int
    offsets: Int64s
    digests: Digests
    keys: Digests
    tombstones: Flags
    aborted: Flags
    timestamps: Int64s
    stamped: Flags
    holes: Int64s
    gaps: int = 0
    compacted_until: int = -1

    def own(self, copy: str, offset: int) -> Iterator[Keyed]:
        """Yield its records from an offset on, see ``keyed.OwnKeys``."""
        del copy
        first = int(np.searchsorted(self.offsets, offset))
        for at, key in zip(self.offsets[first:].tolist(), self.keys[first:].tolist(), strict=True):
            yield Keyed(at, key)
