"""Which sources go into compiled code, and a name for what is compiled of them."""

import hashlib
from collections.abc import Iterator
from importlib.resources.abc import Traversable

_OF_KAFKA = ("kafka/codecs", "kafka/wire", "kafka/text", "kafka/index")
ROOMS = ("errors.py", "compiled_sources.py", "compiling.py", *_OF_KAFKA)
"""numba compiles functions of these alone, and they import nothing else of the package."""


def compiled_sources(package: Traversable) -> str:
    """Return a hash of all that may go into the package's compiled code, by names and text.

    ``package``: its folder, or its place in an archive.
    """
    digest = hashlib.sha256()
    for room in ROOMS:
        for name, text in _sources(package.joinpath(room), room):
            digest.update(f"{name}\n".encode())
            digest.update(hashlib.sha256(text).digest())
    return digest.hexdigest()[:16]


def _sources(entry: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the sources below a room, by their names."""
    if entry.is_dir():
        for child in sorted(entry.iterdir(), key=lambda child: child.name):
            yield from _sources(child, f"{name}/{child.name}")
    elif name.endswith(".py") and entry.is_file():
        yield name, entry.read_bytes()
