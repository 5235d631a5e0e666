"""Records of int64 fields that Python and compiled code share, and name alike.

Python says ``walk.position``. A compiled function takes ``walk.values``, and says
``walk.position`` of ``values.view(SomeRecord.dtype)[0]``: the fields in the order of the class.
"""

from collections.abc import Callable, Collection
from operator import itemgetter
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt


class Slot:
    """An int64 of a ``SharedRecord``."""

    def __set_name__(self, owner: type, name: str) -> None:
        fields = [key for key, value in vars(owner).items() if isinstance(value, Slot)]
        self._slot = fields.index(name)

    def __get__(self, record: "SharedRecord", owner: Any = None) -> int:
        return record.cells[self._slot]

    def __set__(self, record: "SharedRecord", value: int) -> None:
        record.cells[self._slot] = value


class SharedRecord:
    """A record whose class declares its fields; all are 0 at first."""

    dtype: ClassVar[np.dtype[np.void]]

    def __init_subclass__(cls) -> None:
        fields = [name for name, value in vars(cls).items() if isinstance(value, Slot)]
        # ``np.record``: Python has the fields as attributes, too, where nothing is compiled
        cls.dtype = np.dtype((np.record, [(name, np.int64) for name in fields]))

    def __init__(self) -> None:
        self._hold(np.zeros(self.dtype.itemsize // 8, dtype=np.int64))

    def _hold(self, values: npt.NDArray[np.int64]) -> None:
        self.values = values
        self.cells = memoryview(values)  # Python reads one of its cells sooner

    def copy(self) -> Self:
        """Return a record with the same values, which change apart from these."""
        other = type(self).__new__(type(self))
        other._hold(self.values.copy())
        return other

    @classmethod
    def named(cls, fields: Collection[str]) -> Callable[[Self], dict[str, int]]:
        """Return what gives the values of some fields, two at least, by name."""
        slots = {name: i for i, name in enumerate(cls.dtype.names or ()) if name in fields}
        pick = itemgetter(*slots.values())
        return lambda record: dict(zip(slots, pick(record.values.tolist()), strict=True))
