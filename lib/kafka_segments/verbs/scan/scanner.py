"""Recover one segment after another, and publish their index files."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from kafka_segments.engine.derived.topic_sizes import TopicSizes, recovery_of
from kafka_segments.errors import FileChangedError
from kafka_segments.files.changes.index_files import IndexOutput, IndexPublisher
from kafka_segments.files.segments.format_files import Around, Files, FormatFiles
from kafka_segments.files.segments.largest_record import LargestRecordReader
from kafka_segments.files.storage.files import OpenSegment, first_line, place
from kafka_segments.files.storage.files_ahead import FilesInTurn
from kafka_segments.files.storage.permissions import is_forbidden
from kafka_segments.kafka.index.formats.by_name import KAFKAS_OWN
from kafka_segments.kafka.index.formats.index_format import IndexFormat
from kafka_segments.kafka.index.segment.first_look import FirstLook
from kafka_segments.kafka.index.segment.recovered_segment import Damage, DamageKind, SegmentRecovery
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import FULL, INDEX, RecoveryOptions
from kafka_segments.kafka.text.names import TXN_INDEX_SUFFIX
from kafka_segments.verbs.scan.first_looks import FirstLooks, Looked
from kafka_segments.verbs.scan.right_files import BESIDE, RightFiles


class ScanOptions(NamedTuple):
    """How segments are scanned; the options cross to the executors.

    ``output`` is None if no index files are written. ``sizes``: the index settings of each topic;
    None: those of ``recovery`` hold for all. ``entries`` is the folder that the index
    entries go to (``entry_files``); None if they go nowhere. ``is_first_look``: what can be known
    without reading a segment is all that is asked for. ``has_record_sizes``: each record is decoded
    for the size of the largest.
    """

    recovery: RecoveryOptions
    output: IndexOutput | None
    index_format: IndexFormat = KAFKAS_OWN
    entries: str | None = None
    is_first_look: bool = False
    sizes: TopicSizes | None = None
    has_record_sizes: bool = False


class Scanned(NamedTuple):
    """A scanned segment; ``recovery`` is None if it could not be read, or was looked at only.

    ``checked`` says how much was read: full, headers or index. ``look`` is what a first look found,
    ``bytes_read`` what that took; ``doubt`` says why a first look was not enough, so that the
    segment was read as a whole.
    ``size_bytes`` is the size of the log in an object of tiered storage; None: the file's size.
    ``fallback_ms`` is what a broker takes for the largest timestamp of a log without timestamps;
    None: the file's mtime.
    """

    recovery: SegmentRecovery | None
    damage: Damage | None
    size_bytes: int | None = None
    fallback_ms: int | None = None
    checked: str = FULL
    look: FirstLook | None = None
    bytes_read: int | None = None
    doubt: str | None = None


class SegmentScanner:
    """Scans segments one after another; its buffers are made once a task."""

    def __init__(self, options: ScanOptions) -> None:
        self._recovery, self._sizes = options.recovery, options.sizes
        self._recoverers: dict[RecoveryOptions, SegmentRecoverer] = {}
        self._of_topics: dict[tuple[str, int, str], tuple[RecoveryOptions, SegmentRecoverer]] = {}
        self._checked = options.recovery.checked
        self._looks = FirstLooks(options.recovery) if options.is_first_look else None
        self._publisher = None if options.output is None else IndexPublisher(options.output)
        self._format = FormatFiles(options.index_format)
        self._right = RightFiles()
        self._records = LargestRecordReader() if options.has_record_sizes else None
        self._files = FilesInTurn()
        self._reads_all = options.recovery.check_crc and not options.is_first_look

    def announce(self, segments: Iterable[tuple[str, str, str]]) -> None:
        """Say which segments are scanned next: source, relative path and name of each."""
        if self._reads_all:
            self._files.announce(
                place(source).child(relative_path, name) for source, relative_path, name in segments
            )

    def close(self) -> None:
        """Give up what was announced and not scanned."""
        self._files.close()

    def begin(
        self,
        source: str,
        relative_path: str,
        name: str,
        base_offset: int,
        *,
        topic: tuple[str, int, str] = ("", -1, ""),
        around: Around | None = None,
        gone: Sequence[str] = (),
        is_active: bool = False,
        looked: Looked | None = None,
    ) -> Callable[[], Scanned]:
        """Recover a segment, or take a first look at it; return what publishes its index files.

        In the background the store is asked whether the segment is unchanged: begin the next
        segment before what is returned is called. A file that cannot be read is a ``Scanned`` with
        damage, not an exception. ``topic``: its cluster, broker id and name. ``gone`` has the
        suffixes of index files of another format, which are removed. ``looked`` is the first look,
        if it has been taken already.
        """
        file = place(source).child(relative_path, name)
        doubt = None
        try:
            if self._looks is not None:
                looked = looked or self._looks.take(source, file, base_offset, is_active=is_active)
                if looked.found is not None:
                    return partial(_known_by, looked)
                doubt = looked.doubt
            with self._files.open(file) as segment:
                settings, recoverer = self._of_topics.get(topic) or self._begin_topic(topic)
                recovery, files, damage = self._recover(
                    recoverer, segment, base_offset, around or Around()
                )
                if self._publisher is not None and self._publisher.is_beside_segments():
                    files = self._right.left_out(
                        files,
                        self._publisher.found(source, relative_path, base_offset, BESIDE),
                        recovery,
                        segment.read_into,
                        base_offset=base_offset,
                        settings=settings,
                    )
            check = self._files.begin_check(segment)
        except (OSError, FileChangedError) as error:
            return partial(_unread, error)
        is_unread = damage is not None and damage.kind == DamageKind.TOO_LARGE
        scanned = Scanned(
            None if is_unread else recovery,
            damage,
            size_bytes=None if segment.manifest is None else segment.size_bytes,
            fallback_ms=segment.tiered_timestamp_ms,
            checked=self._checked,
            doubt=doubt,
        )
        removed: Files = dict.fromkeys(gone)
        if not recovery.producers.has_transactions():  # else the fold over its log decides
            removed[TXN_INDEX_SUFFIX] = None

        def finish() -> Scanned:
            try:
                check()
            except (OSError, FileChangedError) as error:
                return _unread(error)
            publisher = self._publisher
            if publisher is not None and not publisher.leaves_alone(
                truncated_bytes=recovery.truncated_bytes
            ):
                publisher.publish(source, relative_path, base_offset, removed | files)
            return scanned

        return finish

    def _begin_topic(self, topic: tuple[str, int, str]) -> tuple[RecoveryOptions, SegmentRecoverer]:
        settings = recovery_of(self._recovery, self._sizes, *topic)
        if settings not in self._recoverers:
            self._recoverers[settings] = SegmentRecoverer(settings)
        self._of_topics[topic] = settings, self._recoverers[settings]
        return self._of_topics[topic]

    def _recover(
        self, recoverer: SegmentRecoverer, segment: OpenSegment, base_offset: int, around: Around
    ) -> tuple[SegmentRecovery, Files, Damage | None]:
        recovery = recoverer.recover(
            segment.read_into,
            size_bytes=segment.size_bytes,
            base_offset=base_offset,
            fetched_at=segment.fetched_at,
            written_bytes=segment.written_bytes,
        )
        if self._records is not None:
            size = recovery.valid_bytes
            largest = self._records.read(segment.read_into, size_bytes=size)
            recovery = recovery._replace(max_record_bytes=largest)
        if self._publisher is None:
            return recovery, {}, recovery.damage
        if segment.tiered_timestamp_ms is not None:  # the object's own mtime is the upload's
            around = around._replace(last_modified_ms=segment.tiered_timestamp_ms)
        files, damage = self._format.make(
            recovery, segment.read_into, base_offset=base_offset, around=around
        )
        return recovery, files, damage


def _unread(error: OSError | FileChangedError) -> Scanned:
    """Return what is known of a segment that could not be read, or not to its end."""
    if isinstance(error, FileNotFoundError):
        message = "listed, but gone when it was to be read"
        return Scanned(None, Damage(DamageKind.VANISHED, 0, message))
    if isinstance(error, FileChangedError):
        return Scanned(None, Damage(DamageKind.CHANGED, error.position, str(error)))
    kind = DamageKind.NOT_PERMITTED if is_forbidden(error) else DamageKind.UNREADABLE
    return Scanned(None, Damage(kind, 0, first_line(error)))


def in_turn(begun: Iterable[Callable[[], Scanned]]) -> Iterator[Scanned]:
    """Finish each segment when the next one is begun."""
    before: Callable[[], Scanned] | None = None
    for one in begun:
        if before is not None:
            yield before()
        before = one
    if before is not None:
        yield before()


def _known_by(looked: Looked) -> Scanned:
    return Scanned(
        None,
        None,
        size_bytes=looked.size_bytes,
        checked=INDEX,
        look=looked.found,
        bytes_read=looked.bytes_read,
    )
