"""What lies below a source that has no segment: a look at the names of a few folders."""

from collections import deque
from collections.abc import Iterator

from kafka_segments.errors import SourceError
from kafka_segments.files.storage.files import list_folder, place
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.broker_rules.foreign_files import foreign_text

_MOST_FOLDERS = 64


def foreign_files_below(source: str) -> str | None:
    """Say what the files below a source are, by their names; None: nobody knows them."""
    return foreign_text(_names(source))


def _names(source: str) -> Iterator[tuple[str, str]]:
    waiting = deque([""])
    for _ in range(_MOST_FOLDERS):
        if not waiting:
            return
        folder = waiting.popleft()
        try:
            entries = list_folder(place(source).child(folder))
        except SourceError:
            continue
        name = join_uri(source, folder).rpartition("/")[2]
        for entry in entries:
            if not entry.is_folder:
                yield name, entry.name
            elif entry.oddity is None and entry.link is None:
                waiting.append(join_uri(folder, entry.name))
