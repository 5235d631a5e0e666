"""The row of an index that a cut to the base begins from (AbstractIndex.indexSlotRangeFor)."""

import numpy as np
import pytest

from kafka_segments.index.cut_to_base import _WARM_BYTES, _slot

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
