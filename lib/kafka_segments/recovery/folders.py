"""Read the log directories below the sources, as a broker's start finds them."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from kafka_segments.errors import CorruptTextError, SourceError
from kafka_segments.index.recovery import SegmentRecoverer
from kafka_segments.index.recovery_options import RecoveryOptions
from kafka_segments.index.transactions import ends_below
from kafka_segments.recovery.decide.starts import FoundLog
from kafka_segments.sources.listed import MOST_LEVELS, Listed
from kafka_segments.sources.log_dir_folder import is_log_dir, list_log_dir
from kafka_segments.sources.source_folder import entries_of
from kafka_segments.storage.files import Place, first_line, open_segment, place, read_whole
from kafka_segments.storage.local_folder import FileEntry
from kafka_segments.storage.stores import REQUESTS_AT_ONCE
from kafka_segments.storage.uris import join_uri
from kafka_segments.wire.names import (
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TXN_INDEX_SUFFIX,
    PartitionFolder,
    parse_partition_folder,
    parse_segment_name,
)

_SWAPPED_LOG = LOG_SUFFIX + SWAP_SUFFIX
_INDEX_CACHE = "remote-log-index-cache"
_MOST_INDEX_BYTES = 64 * 1024 * 1024
_Offsets = dict[tuple[str, int], dict[str, int]]


@dataclass(frozen=True)
class FoundLogDir:
    """A log directory: whose it is, how its broker stopped, its logs in the order of the load.

    ``problems``: what could not be read, or keeps the broker from starting.
    """

    uri: str
    cluster: str
    broker_id: int
    is_clean: bool
    logs: tuple[FoundLog, ...]
    problems: tuple[str, ...] = ()
    offsets: _Offsets = field(default_factory=dict, repr=False)


def find_log_dirs(
    sources: Iterable[str],
    *,
    cluster: str | None = None,
    broker_id: int | None = None,
    follow_links: bool = False,
) -> list[FoundLogDir]:
    """Read the log directories below sources, as ``absolute_uri`` gives them.

    A source that is one partition's folder counts as a log directory with this log alone. Its
    broker's checkpoints are looked for in the folder above.

    Raises:
        SourceError: a source has no log directory below, or cannot be listed.
    """
    found: dict[str, FoundLogDir] = {}
    for source in sources:
        here = list(_below(source, follow_links=follow_links))
        if not here:
            raise SourceError(source, "no log directory: no <topic>-<partition> folder lies there")
        for log_dir in here:
            found[log_dir.uri] = log_dir
    return [_named(log_dir, cluster, broker_id) for log_dir in found.values()]


def _named(log_dir: FoundLogDir, cluster: str | None, broker_id: int | None) -> FoundLogDir:
    return FoundLogDir(
        log_dir.uri,
        log_dir.cluster if cluster is None else cluster,
        log_dir.broker_id if broker_id is None else broker_id,
        log_dir.is_clean,
        log_dir.logs,
        log_dir.problems,
    )


def _below(source: str, *, follow_links: bool, level: int = 0) -> Iterator[FoundLogDir]:
    entries = entries_of(source, "", follow_links=follow_links)
    above, _, name = source.rpartition("/")
    here = parse_partition_folder(name)
    if here is not None and any(entry.name.endswith(LOG_SUFFIX) for entry in entries):
        beside = [entry for entry in entries_of(above, "") if not entry.is_folder]
        only = FileEntry(name, True, 0, 0)
        yield _log_dir(above, [*beside, only], follow_links=follow_links)
    elif _is_log_dir(source, entries):
        yield _log_dir(source, entries, follow_links=follow_links)
    elif level < MOST_LEVELS:
        for entry in entries:
            if entry.is_folder and entry.oddity is None:
                child = join_uri(source, entry.name)
                yield from _below(child, follow_links=follow_links, level=level + 1)


def _is_log_dir(source: str, entries: list[FileEntry]) -> bool:
    """Tell a log directory from a folder of several log directories, named like ``node-1``."""
    if is_log_dir([entry for entry in entries if not entry.is_folder]):
        return True
    named = [entry.name for entry in entries if entry.is_folder and is_log_dir([entry])]
    return any(_is_log(entries_of(source, name)) for name in named)


def _is_log(entries: list[FileEntry]) -> bool:
    has_logs = any(entry.name.endswith(LOG_SUFFIX) for entry in entries if not entry.is_folder)
    return has_logs or not any(entry.is_folder for entry in entries)


def _log_dir(uri: str, entries: list[FileEntry], *, follow_links: bool) -> FoundLogDir:
    row = list_log_dir(place(uri), uri, "", uri, entries)
    meta = row.meta or {}
    offsets = _offsets(row)
    problems = [row.reason] if row.reason else []
    named: list[tuple[str, PartitionFolder]] = []
    for entry in _in_brokers_order(uri, entries):
        folder = parse_partition_folder(entry.name)
        if folder is not None:
            named.append((entry.name, folder))
        elif entry.name != _INDEX_CACHE:
            problems.append(f"{entry.name}: no <topic>-<partition>; a broker would not start")

    def read(folder: tuple[str, PartitionFolder]) -> FoundLog | str:
        return _log(uri, *folder, offsets, follow_links=follow_links)

    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        read_logs = list(pool.map(read, named))
    return FoundLogDir(
        uri,
        meta.get("cluster_id") or "",
        -1 if meta.get("node_id") is None else meta["node_id"],
        bool(meta.get("was_clean_shutdown")),
        tuple(log for log in read_logs if isinstance(log, FoundLog)),
        (*problems, *(log for log in read_logs if isinstance(log, str))),
    )


def _in_brokers_order(uri: str, entries: list[FileEntry]) -> list[FileEntry]:
    """Return the folders in the order in which a broker takes them: as the disk lists them."""
    folders = [entry for entry in entries if entry.is_folder]
    if not place(uri).store.is_local:
        return folders
    with os.scandir(uri) as names:
        turn = {name.name: number for number, name in enumerate(names)}
    return sorted(folders, key=lambda entry: turn.get(entry.name, len(turn)))


def _offsets(row: Listed) -> _Offsets:
    return {(found["topic"], found["partition"]): found for found in row.offsets or []}


def _log(
    uri: str, name: str, folder: PartitionFolder, offsets: _Offsets, *, follow_links: bool
) -> FoundLog | str:
    """Read a partition's folder; return a text that says why if it cannot be read."""
    try:
        entries = entries_of(uri, name, follow_links=follow_links)
    except SourceError as error:
        return f"{name}: {error.reason}"
    files = [entry for entry in entries if not entry.is_folder and entry.oddity is None]
    here = place(uri).child(name)
    noted = offsets.get((folder.topic, folder.partition), {})
    try:
        swaps = {
            _base_offset(file.name): _end_offset(here.child(file.name), file)
            for file in files
            if file.name.endswith(_SWAPPED_LOG)
        }
        refused = frozenset(
            base
            for file in files
            if file.name.endswith(TXN_INDEX_SUFFIX)
            and is_txn_index_refused(here.child(file.name), base := _base_offset(file.name))
        )
    except (OSError, CorruptTextError) as error:
        return f"{name}: {first_line(error)}"
    return FoundLog(
        log_dir=uri,
        folder=name,
        topic=folder.topic,
        partition=folder.partition,
        state=folder.state,
        files={file.name: file.size_bytes for file in files},
        recovery_point=noted.get("recovery_point"),
        log_start_offset=noted.get("log_start_offset"),
        swap_end_offsets=swaps,
        refused_txn_indexes=refused,
    )


def _base_offset(name: str) -> int:
    found = parse_segment_name(name.partition(".")[0] + LOG_SUFFIX)
    return -1 if found is None else found


def _end_offset(file: Place, entry: FileEntry) -> int:
    """Return the next offset of a segment, by its headers."""
    recoverer = SegmentRecoverer(RecoveryOptions(check_crc=False))
    with open_segment(file) as segment:
        return recoverer.recover(
            segment.read_into,
            size_bytes=segment.size_bytes,
            base_offset=max(_base_offset(entry.name), 0),
        ).next_offset


def is_txn_index_refused(file: Place, base_offset: int) -> bool:
    """Tell whether Kafka's check of a ``.txnindex`` fails.

    Raises:
        OSError: it cannot be read.
    """
    return ends_below(read_whole(file, most_bytes=_MOST_INDEX_BYTES), base_offset)
