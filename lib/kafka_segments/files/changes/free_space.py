"""Check the room on file systems before anything is written."""

from collections.abc import Mapping
from pathlib import Path

from kafka_segments.errors import NoSpaceError
from kafka_segments.files.storage.durable_files import free_bytes, nearest_folder


def check_space(needed_bytes: Mapping[str, int]) -> None:
    """Check that folders have room for so many bytes; folders on one file system share it.

    Raises:
        NoSpaceError: a file system has too little; the error names the folder that needs most
            there.
    """
    by_device: dict[int, list[tuple[int, str]]] = {}
    for folder, needed in needed_bytes.items():
        device = nearest_folder(Path(folder)).stat().st_dev
        by_device.setdefault(device, []).append((needed, folder))
    for needs in by_device.values():
        needed, free = sum(need for need, _ in needs), free_bytes(Path(max(needs)[1]))
        if needed > free:
            raise NoSpaceError(max(needs)[1], needed, free)
