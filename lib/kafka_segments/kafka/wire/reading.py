"""How the core asks for bytes, wherever they lie."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MAX_FILE_BYTES = 2**31 - 1  # the most that Kafka opens as a segment

ReadInto = Callable[[int, memoryview], int]
"""Fill the view from a position in the file; return how many bytes were read, fewer at its end."""

FRONT_BYTES = 4096


class Fetched(NamedTuple):
    """Bytes of a file that are in memory already.

    ``memory`` begins with ``FRONT_BYTES`` that the reader may overwrite. The ``length`` bytes of
    the file that follow must not change.
    """

    memory: npt.NDArray[np.uint8]
    length: int


FetchedAt = Callable[[int], Fetched | None]
"""Return what was fetched and begins at a position; it stays as it is until two others were asked
for. None: nothing begins there, the bytes must be copied by ``ReadInto``."""

FillViews = Callable[[int, int, Iterator[memoryview]], int]
"""Fetch a range, a position and a length, into views, one after another; return how many bytes were
filled: fewer at the file's end, or where there are no more views. A view may take its time."""
