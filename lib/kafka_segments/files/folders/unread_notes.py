"""What a listing could not read of the small files that brokers keep beside segments."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafka_segments.files.folders.kinds import WITH_NOTES
from kafka_segments.files.folders.listing_rows import Listed
from kafka_segments.files.storage.uris import join_uri


class UnreadNotes(NamedTuple):
    """Checkpoints and ids that are there and were not read.

    ``places``: of how many log directories and logs; ``example``: which files of one, and why.
    """

    places: int = 0
    example: str = ""

    def lines(self, where: str = "") -> Iterator[str]:
        """Yield the line that says so; none where all were read. ``where``: where all are named."""
        if self.places:
            more = f" ({self.places} such log directories and logs)" if self.places > 1 else ""
            yield f"not known what is noted beside segments: {self.example}{more}{where}"


NOTES_READ = UnreadNotes()


def unread_in(listed: Iterable[Listed]) -> UnreadNotes:
    """Return what rows of a listing say of it."""
    told = [
        f"{join_uri(row.source, row.relative_path)}: {row.reason}"
        for row in listed
        if row.kind in WITH_NOTES and row.reason is not None
    ]
    return UnreadNotes(len(told), min(told, default=""))
