"""Tell which batches of a segment fit their place."""

import numpy as np
import numpy.typing as npt

from kafka_segments.kafka.wire import batches as wire
from kafka_segments.kafka.wire import header_layout as layout


def fitting(batches: wire.Batches, low: int, limit: int, next_offset: int) -> npt.NDArray[np.bool_]:
    """Tell which batches fit between ``low`` and ``limit``, behind ``next_offset``, and in order.

    Of two batches that are out of order, the first is wrong if it leaves a gap behind the one
    before it and the second does not. Otherwise the second is wrong.
    """
    bases, lasts, magics = batches[
        [wire.BATCH_BASE_OFFSET, wire.BATCH_LAST_OFFSET, wire.BATCH_MAGIC]
    ]
    good: npt.NDArray[np.bool_] = (bases >= low) & (lasts >= bases) & (lasts < limit)
    good &= (magics >= 0) & (magics <= layout.MAGIC_V2)
    before = np.concatenate([[next_offset - 1], lasts[good]])
    if (bases[good] > before[:-1]).all():
        return good
    ends = [next_offset - 1]
    kept: list[int] = []
    for at in np.flatnonzero(good).tolist():
        base = int(bases[at])
        if base <= ends[-1] and kept and int(bases[kept[-1]]) != ends[-2] + 1 and base > ends[-2]:
            good[kept.pop()] = False
            ends.pop()
        if base <= ends[-1]:
            good[at] = False
        else:
            kept.append(at)
            ends.append(int(lasts[at]))
    return good
