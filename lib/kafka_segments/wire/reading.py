"""How the core asks for bytes, wherever they lie."""

from collections.abc import Callable

MAX_FILE_BYTES = 2**31 - 1  # the most that Kafka opens as a segment

ReadInto = Callable[[int, memoryview], int]
"""Fill the view from a position in the file; return how many bytes were read, fewer at its end."""
