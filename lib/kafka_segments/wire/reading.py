"""How the core asks for bytes, wherever they lie."""

from collections.abc import Callable

ReadInto = Callable[[int, memoryview], int]
"""Fill the view from a position in the file; gives the bytes read, fewer only at the end."""
