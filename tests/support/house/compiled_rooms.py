"""Which sources go into compiled code, and a name for what is compiled of them."""

import hashlib
from pathlib import Path

ROOMS = ("errors.py", "compiling.py", "kafka/wire", "kafka/index")
"""numba compiles functions of these alone, and they import nothing else of the package."""


def compiled_sources(package: Path) -> str:
    """Return a hash of all that may go into the package's compiled code, by names and text."""
    digest = hashlib.sha256()
    for room in ROOMS:
        for source in sorted([package / room, *(package / room).rglob("*.py")]):
            if source.is_file():
                digest.update(f"{source.relative_to(package)}\n".encode())
                digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()[:16]
