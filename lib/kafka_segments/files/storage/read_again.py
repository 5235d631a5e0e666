"""Marks in a warehouse by which the next build of each source reads all of its segments again.

A mark is a file, and so is what says that a source has been read again since. None is ever changed:
builds that run at the same time, killed ones and stores without locks lose none.
"""

import hashlib
import uuid
from collections.abc import Collection, Iterable

from kafka_segments.errors import SourceError
from kafka_segments.files.storage.durable_files import write_durably
from kafka_segments.files.storage.files import (
    Place,
    first_line,
    list_folder,
    place,
    read_whole,
)
from kafka_segments.files.storage.local_file import Kind
from kafka_segments.files.storage.publishing import make_folder, publish
from kafka_segments.files.storage.uris import join_uri, lies_in

_FOLDER = "_read_again"
_MARK, _READ = ".mark", ".read"
_MOST_TEXT_BYTES = 64 * 1024


def mark_read_again(warehouse: str, why: str, *, of: str = "") -> str | None:
    """Leave a mark, with a line for a person that says what it is for; return its name.

    None: there is one of that name.

    ``of``: a name of what it is for, which is marked once; else it is another mark each time.

    Raises:
        OSError: it cannot be written.
    """
    mark = of or uuid.uuid4().hex
    name = f"{mark}{_MARK}"
    if of and place(join_uri(warehouse, _FOLDER, name)).kind() is not Kind.NOTHING:
        return None
    _write(warehouse, name, why)
    return mark


def marks_of(warehouse: str, sources: Iterable[str]) -> dict[str, str]:
    """Return the marks since which one of the sources has not been read again, and what each says.

    A source may have been read as a part of another one of them.

    Raises:
        SourceError: there is a folder of marks, and it cannot be listed.
    """
    folder = place(join_uri(warehouse, _FOLDER))
    if folder.kind() is Kind.NOTHING:
        return {}
    names = {entry.name for entry in list_folder(folder)}
    marks = (name.removesuffix(_MARK) for name in sorted(names) if name.endswith(_MARK))
    asked = list(sources)
    wholes = [[other for other in asked if lies_in(source, other)] for source in asked]
    return {
        mark: _text_of(folder.child(f"{mark}{_MARK}"))
        for mark in marks
        if any(names.isdisjoint(_read_since(mark, one) for one in whole) for whole in wholes)
    }


def _text_of(mark: Place) -> str:
    try:
        text = read_whole(mark, most_bytes=_MOST_TEXT_BYTES).decode("utf-8", "replace")
    except (OSError, SourceError, ValueError) as error:
        return f"{mark.path}, which says why, cannot be read: {first_line(error)}"
    return " ".join(text.split()) or f"{mark.path} does not say why"


def note_read_again(warehouse: str, marks: Collection[str], sources: Iterable[str]) -> None:
    """Note that all segments of sources have been read since marks.

    Raises:
        OSError: it cannot be written.
    """
    for source in sources:
        for mark in marks:
            _write(warehouse, _read_since(mark, source), source)


def _read_since(mark: str, source: str) -> str:
    return f"{mark}.{hashlib.sha256(source.encode('utf-8', 'surrogateescape')).hexdigest()}{_READ}"


def _write(warehouse: str, name: str, text: str) -> None:
    folder = place(join_uri(warehouse, _FOLDER))
    make_folder(folder)
    file: Place = folder.child(name)
    data = f"{text}\n".encode("utf-8", "surrogateescape")
    if file.store.is_local:
        write_durably(file.path, data)
    else:
        publish(file, data)
