"""The row of an index that a cut to the base begins from (AbstractIndex.indexSlotRangeFor)."""

import numpy as np
import pytest

from kafka_segments.kafka.index.segment.cut_to_base import _WARM_BYTES, _slot
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from support.logs.log_reading import recovered
from support.logs.strategies import v1_message

ENTRY_BYTES = 8
WARM = _WARM_BYTES // ENTRY_BYTES


@pytest.mark.parametrize("count", [0, 1, 2, 5, WARM, WARM + 1, WARM + 2, 3 * WARM])
def test_it_is_the_last_row_not_above_the_target_where_values_rise(count: int) -> None:
    values = np.arange(10, 10 + 4 * count, 4, dtype=np.int64)
    targets = {9, 10, 11, 14, *(values[-WARM - 3 :][:6] + 1).tolist(), 10 + 4 * count}

    for target in targets | {target - 1 for target in targets}:
        expected = int(np.searchsorted(values, target, side="right")) - 1
        assert _slot(values, target, entry_bytes=ENTRY_BYTES) == expected, target


def test_the_warm_section_begins_a_page_before_the_last_row() -> None:
    values = np.arange(WARM + 2, dtype=np.int64) + 10
    values[:3] = 0, 5, 3

    assert _slot(values, 4, entry_bytes=ENTRY_BYTES) == 0


def test_a_time_entry_that_stays_outlives_the_batch_that_it_is_of() -> None:
    # Of the batches the first one stays. Three time entries say offset 0, the base: the search in
    # the cold section takes the third, and the two before it stay.
    first = v1_message(3, 1000, None, bytes(60))
    at_the_base = [(0, 1001), (0, 1002), (1, 1002), (0, 1003), (2, 1003)]
    rising = [(offset, 2000 + offset) for offset in range(3, 1000) for _ in range(2)]
    log = first + b"".join(
        v1_message(offset, timestamp, None, b"v")
        for offset, timestamp in [*at_the_base, *rising, (0, 1), (0, 1)]
    )

    found = recovered(log, base_offset=0, interval_bytes=40)

    assert found.damage is not None
    assert found.damage.kind == DamageKind.OFFSET_GOES_BACK
    assert found.valid_bytes == len(first)
    assert (found.max_timestamp, found.offset_of_max_timestamp) == (1002, 0)
