"""Account for all bytes of log directories, from one walk over their files."""

from dataclasses import dataclass, field

from kafka_segments.files.folders.used_disk import DiskSpace, UsedFolder, disk_space, walk_disk
from kafka_segments.files.storage.durable_files import TEMPORARY
from kafka_segments.files.storage.folder_lock import LockState, lock_state
from kafka_segments.files.storage.local_folder import as_text
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.text.names import parse_segment_name
from kafka_segments.verbs.find.disk.decide.accounts import Account, TableGrowth, TopicUse
from kafka_segments.verbs.find.disk.decide.growth import (
    SPANS_MS,
    Growth,
    Written,
    growth_of,
    sum_of,
)
from kafka_segments.verbs.find.disk.decide.kinds import (
    FolderPlace,
    What,
    Where,
    named_folder,
    place_below,
    what_is,
)
from kafka_segments.verbs.find.disk.judged_folders import (
    NOTHING_READ,
    AlreadyRead,
    FoundFolder,
    JudgedFolder,
    judge_folders,
)


@dataclass(frozen=True)
class DiskOptions:
    """What is looked at: local folders, as absolute paths; the moment, in ms since 1970."""

    sources: tuple[str, ...]
    now_ms: int


@dataclass(frozen=True)
class DirUse:
    """A log directory: its disk, and whether a broker holds it. ``space`` None: not known.

    ``newest_ms``: when the last byte of a segment in it was written, by the times of files.
    """

    log_dir: str
    space: DiskSpace | None
    lock: LockState
    newest_ms: int | None


@dataclass
class DiskUse:
    """All that was found.

    ``problems``: what could not be looked at, and why. ``unknown``: what is not known besides.
    ``of_tables``: what tables say of the growth, where they were asked.
    """

    dirs: list[DirUse] = field(default_factory=list)
    accounts: list[Account] = field(default_factory=list)
    topics: list[TopicUse] = field(default_factory=list)
    folders: list[JudgedFolder] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    of_tables: TableGrowth | None = None

    @property
    def used_bytes(self) -> int:
        """Return all bytes in use, those of folders above log directories included."""
        return sum(one.used_bytes for one in self.accounts)

    def has_only_folders(self, log_dir: str) -> bool:
        """Tell whether nothing but other folders was found in a folder."""
        return all(one.what == What.FOLDERS for one in self.accounts if one.log_dir == log_dir)

    def on_disk_of(self, one: DirUse) -> set[str]:
        """Return the log directories that lie on the disk of one, this one included."""
        return {
            as_text(each.log_dir)
            for each in self.dirs
            if each is one or (each.space and one.space and each.space.device == one.space.device)
        }

    def growth_of(self, one: DirUse) -> tuple[Growth, ...]:
        """Return what was written lately on a log directory's disk, by all that lie on it."""
        same = self.on_disk_of(one)
        grown = [topic.growth for topic in self.topics if topic.log_dir in same]
        return tuple(sum_of(each[k] for each in grown) for k in range(len(SPANS_MS)))

    def used_of(self, log_dir: str) -> int:
        """Return the bytes in use below a log directory."""
        return sum(one.used_bytes for one in self.accounts if one.log_dir == log_dir)


def run_disk(options: DiskOptions, *, read: AlreadyRead = NOTHING_READ) -> DiskUse:
    """Account for the bytes of log directories. ``read``: what need not be read again of them."""
    walk = _Walk(options.now_ms)
    for folder in walk_disk(options.sources):
        walk.take(folder)
    use = walk.use
    use.accounts = sorted(walk.accounts.values(), key=lambda one: (one.log_dir, -one.used_bytes))
    use.topics = sorted(walk.topics.values(), key=lambda one: (one.log_dir, -one.used_bytes))
    log_dirs = sorted({one.log_dir for one in use.accounts})
    use.dirs = [_dir_use(log_dir, walk.newest_ms.get(log_dir)) for log_dir in log_dirs]
    use.folders, use.unknown = judge_folders(walk.log_dirs, list(walk.folders.values()), read)
    return use


class _Walk:
    """Adds up what a walk finds, folder by folder."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._places: dict[tuple[str, str], FolderPlace] = {}
        self.use = DiskUse()
        self.accounts: dict[tuple[str, What], Account] = {}
        self.topics: dict[tuple[str, str], TopicUse] = {}
        self.folders: dict[tuple[str, str], FoundFolder] = {}
        self.log_dirs: list[str] = []
        self.newest_ms: dict[str, int] = {}

    def take(self, folder: UsedFolder) -> None:
        """Add a folder."""
        path = join_uri(folder.root, folder.path)
        if folder.problem is not None:
            self.use.problems.append(f"{as_text(path)}: {folder.problem}")
        place = self._place(folder, path)
        if place.where == Where.LOG_DIR:
            self.log_dirs.append(path)
        active = self._count(place, folder)
        if place.where in (Where.LOG, Where.STRANGE):
            self._add_folder(place, folder, active)
        if place.where == Where.LOG and place.partition is not None:
            self._add_topic(place, place.partition.topic, folder)

    def _place(self, folder: UsedFolder, path: str) -> FolderPlace:
        parent = self._places.get((folder.root, folder.path.rpartition("/")[0]))
        if parent is None or not folder.path:
            parent = named_folder(path)
        folders = [file.name for file in folder.files if file.is_folder]
        files = [file.name for file in folder.files if not file.is_folder]
        place = place_below(parent, path, folders, files)
        if folders:
            self._places[folder.root, folder.path] = place
        return place

    def _count(self, place: FolderPlace, folder: UsedFolder) -> int:
        """Add the files of a folder to its log directory's; return its last base offset."""
        bases = (parse_segment_name(file.name) for file in folder.files)
        active = max((base for base in bases if base is not None), default=-1)
        own = self._account(place.log_dir, What.FOLDERS)
        own.files += 1
        own.used_bytes += folder.used_bytes
        for file in folder.files:
            if file.is_folder:
                continue
            is_own = file.name.endswith(TEMPORARY)
            what = what_is(place, file.name, file.size_bytes, active_base=active)
            account = self._account(place.log_dir, What.OWN if is_own else what)
            account.files += 1
            account.used_bytes += file.used_bytes
            account.size_bytes += file.size_bytes
            account.shared_bytes += file.used_bytes if file.is_shared else 0
            oldest = account.oldest_ms
            account.oldest_ms = file.ctime_ms if oldest is None else min(oldest, file.ctime_ms)
        return active

    def _account(self, log_dir: str, what: What) -> Account:
        return self.accounts.setdefault((log_dir, what), Account(as_text(log_dir), what))

    def _add_folder(self, place: FolderPlace, folder: UsedFolder, active: int) -> None:
        used = folder.used_bytes + sum(file.used_bytes for file in folder.files)
        key = (place.log_dir, place.name)
        known = self.folders.get(key)
        if known is not None:
            is_whole = known.is_whole and folder.problem is None
            self.folders[key] = known._replace(
                used_bytes=known.used_bytes + used, is_whole=is_whole
            )
            return
        bases = (parse_segment_name(file.name) for file in folder.files)
        first = min((base for base in bases if base is not None), default=None)
        partition = place.partition if place.where == Where.LOG else None
        self.folders[key] = FoundFolder(
            *key, partition, used, first, active, is_whole=folder.problem is None
        )

    def _add_topic(self, place: FolderPlace, topic: str, folder: UsedFolder) -> None:
        key = (place.log_dir, topic)
        use = self.topics.setdefault(key, TopicUse(as_text(place.log_dir), as_text(topic)))
        segments = sorted(
            (base, Written(min(file.used_bytes, file.size_bytes), file.mtime_ms))
            for file in folder.files
            if (base := parse_segment_name(file.name)) is not None
        )
        use.partitions += 1
        use.segments += len(segments)
        use.used_bytes += folder.used_bytes + sum(file.used_bytes for file in folder.files)
        written = [one for _, one in segments]
        newest_ms = [one.mtime_ms for one in written]
        if newest_ms:
            known_ms = self.newest_ms.get(use.log_dir, 0)
            self.newest_ms[use.log_dir] = max(known_ms, *newest_ms)
        use.growth = tuple(
            known + growth_of(written, now_ms=self._now_ms, span_ms=span)
            for known, span in zip(use.growth, SPANS_MS, strict=True)
        )


def _dir_use(log_dir: str, newest_ms: int | None) -> DirUse:
    try:
        space = disk_space(log_dir)
    except OSError:
        space = None
    return DirUse(log_dir, space, lock_state(log_dir), newest_ms)
