"""List one folder below a source: its rows, and the folders to go on with.

A source is a log directory, a folder of several, or one partition's folder, on a broker's disk or
as tiered storage keeps it (``storage.tiered_folder``). A folder with segments is a partition's; a
folder of such folders, or with a broker's checkpoint files, is a log directory.
"""

from collections.abc import Iterator

from kafka_segments.errors import SourceError
from kafka_segments.files.folders.kinds import FOLDER, PASSED_OVER, UNLISTED, UNRECOGNIZED
from kafka_segments.files.folders.listing_rows import MOST_LEVELS, Listed, unrecognized
from kafka_segments.files.folders.log_dir_folder import (
    is_foreign,
    is_log_dir,
    list_log_dir,
    same_partitions,
)
from kafka_segments.files.folders.log_folder import LogFolder, list_log, list_tiered_log
from kafka_segments.files.folders.tiered_folder import is_tiered
from kafka_segments.files.storage.files import list_folder, place
from kafka_segments.files.storage.links import with_links_judged
from kafka_segments.files.storage.local_folder import FileEntry
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.broker_rules.foreign_files import foreign_file, foreign_reason
from kafka_segments.kafka.text.names import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    is_of_partition,
    parse_other_form,
    parse_partition_folder,
    parse_segment_name,
)
from kafka_segments.kafka.tier.tiered_names import tiered_folder_of

# Keys of object stores may have them; what is written for them would lie elsewhere.
_NO_FOLDERS = ("", ".", "..")


def entries_of(
    source: str,
    relative_path: str,
    *,
    follow_into: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> list[FileEntry]:
    """Return the entries of a folder below a source; links that are not followed are oddities.

    ``follow_into``: see ``links_into``. ``without``: see ``list_folder``.

    Raises:
        SourceError: the folder cannot be listed.
    """
    entries = list_folder(place(source).child(relative_path), without=without)
    return with_links_judged(source, relative_path, entries, follow_into=follow_into)


def list_source_folder(
    source: str,
    relative_path: str,
    *,
    follow_into: tuple[str, ...] = (),
    finishes_swaps: bool = False,
) -> Iterator[Listed]:
    """Yield the rows of one folder below a source, and rows of the folders to go on with.

    ``follow_into``: see ``links_into``. ``finishes_swaps``: see ``list_log``.
    A folder that cannot be listed, or that lies too deep, is a row of kind ``unlisted``.
    """
    folder = place(source).child(relative_path)
    uri = join_uri(source, relative_path)
    tiered = tiered_folder_of(uri)
    without = INDEX_SUFFIXES if tiered is None else ()  # no row tells of index files
    try:
        entries = entries_of(source, relative_path, follow_into=follow_into, without=without)
    except SourceError as error:
        yield Listed(UNLISTED, source, relative_path, reason=error.reason)
        return
    parent, _, name = uri.rpartition("/")
    if tiered is not None and is_tiered(entries):
        yield from list_tiered_log(folder, source, relative_path, tiered, entries)
        return
    here = parse_partition_folder(name)
    folders = [entry for entry in entries if entry.is_folder]
    files = (entry.name for entry in entries if not entry.is_folder)
    if here is not None and is_of_partition(has_folders=bool(folders), files=files):
        log = LogFolder(folder, source, relative_path, parent, here)
        yield from list_log(log, entries, finishes_swaps=finishes_swaps)
        return
    has_logs = is_log_dir(entries)
    for entry in entries:
        kind, reason = _why_no_part(entry, name, is_beside_logs=has_logs)
        if reason is not None:
            yield unrecognized(source, relative_path, entry, reason, kind)
    if has_logs:
        yield list_log_dir(folder, source, relative_path, uri, entries)
    doubles = same_partitions(folders)
    for entry in folders:
        if entry.name in doubles:
            reason = f"the same partition as {doubles[entry.name]}; a broker would not start"
            yield unrecognized(source, relative_path, entry, reason)
            continue
        if entry.name in _NO_FOLDERS:
            reason = f"objects lie below the name {entry.name!r}, no folder's; it was not entered"
            yield unrecognized(source, relative_path, entry, reason)
            continue
        below = join_uri(relative_path, entry.name)
        if below.count("/") < MOST_LEVELS - 1:
            yield Listed(FOLDER, source, below, name=entry.name)
        else:
            reason = f"it lies {MOST_LEVELS} levels below its source, too deep"
            yield Listed(UNLISTED, source, below, reason=reason)


def _why_no_part(entry: FileEntry, folder: str, *, is_beside_logs: bool) -> tuple[str, str | None]:
    """Return the kind of an entry of a folder that is no partition's, and why it is left out.

    ``folder`` is its name. No reason: it is a folder, a file of the broker's, or beside no logs.
    """
    if entry.oddity is not None:
        return UNRECOGNIZED, entry.oddity
    foreign = None if entry.is_folder else foreign_file(folder, entry.name)
    if foreign is not None:
        is_for_a_person = foreign.has_records and not is_beside_logs
        reason = foreign_reason(foreign, is_read_over=is_beside_logs)
        return UNRECOGNIZED if is_for_a_person else PASSED_OVER, reason
    if not entry.is_folder and _may_be_segment(entry.name, is_beside_logs=is_beside_logs):
        if parse_partition_folder(folder) is None:
            return UNRECOGNIZED, f"its folder's name, {folder}, is no <topic>-<partition>"
        return (
            UNRECOGNIZED,
            f"its folder, {folder}, has folders and no segments: it is no partition's",
        )
    if is_beside_logs and is_foreign(entry):
        return PASSED_OVER, "no file of a broker's in a log directory, which passes over it"
    return PASSED_OVER, None


def _may_be_segment(name: str, *, is_beside_logs: bool) -> bool:
    """Tell whether a file outside of partitions' folders may be a segment that was put there.

    Beside logs a program's own ``.log`` is none.
    """
    if parse_segment_name(name) is not None or parse_other_form(name) is not None:
        return True
    return name.endswith(LOG_SUFFIX) and not is_beside_logs
