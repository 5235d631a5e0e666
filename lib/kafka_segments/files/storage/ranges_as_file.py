"""What is read by ranges, as a file that Python and Arrow read from one position on."""

import io
import os
from collections.abc import Callable


class RangesAsFile(io.RawIOBase):
    """A file of ``size_bytes``; ``read_range`` returns bytes of it by position and length."""

    def __init__(self, size_bytes: int, read_range: Callable[[int, int], bytes]) -> None:
        self._size_bytes, self._read_range = size_bytes, read_range
        self._position = 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it can be read from any position on."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position, counted from the begin, the current position or the end."""
        from_where = {os.SEEK_CUR: self._position, os.SEEK_END: self._size_bytes}
        self._position = from_where.get(whence, 0) + offset
        return self._position

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes, all that are left where no number is given."""
        left = max(0, self._size_bytes - self._position)
        length = left if size is None or size < 0 else min(size, left)
        data = self._read_range(self._position, length) if length else b""
        self._position += len(data)
        return data
