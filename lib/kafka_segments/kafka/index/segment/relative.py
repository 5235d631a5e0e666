"""Offsets relative to a segment's base offset, as every index file stores them: int32."""

import numpy as np
import numpy.typing as npt

from kafka_segments.errors import OffsetOverflowError

MAX_RELATIVE_OFFSET = 2**31 - 1


def check_relative_offsets(offsets: npt.NDArray[np.int64], *, base_offset: int) -> None:
    """Check that offsets fit an index of the segment at ``base_offset``.

    Raises:
        OffsetOverflowError: one lies below it, or more than 2147483647 above.
    """
    relative = offsets - np.int64(base_offset)
    bad = np.flatnonzero((relative < 0) | (relative > MAX_RELATIVE_OFFSET))
    if len(bad):
        raise OffsetOverflowError(int(offsets[bad[0]]), base_offset)
