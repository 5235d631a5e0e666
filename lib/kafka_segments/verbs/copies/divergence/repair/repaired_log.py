"""Write a log that is made of copies: its segments, the files of recovery, and the proof."""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kafka_segments.errors import SetAsideError
from kafka_segments.files.changes.backups import state_of
from kafka_segments.files.changes.manifests import signed
from kafka_segments.files.segments.format_files import Around, FormatFiles
from kafka_segments.files.storage.durable_files import (
    durable_file,
    name_folder,
    remove_temporaries,
    write_durably,
)
from kafka_segments.files.storage.files import open_segment, place
from kafka_segments.kafka.index.log.load import LogLoad
from kafka_segments.kafka.index.log.loading import LoadOptions
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.transaction_index import encode_transaction_index
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from kafka_segments.kafka.text.names import LOG_SUFFIX, SNAPSHOT_SUFFIX, TXN_INDEX_SUFFIX, file_name
from kafka_segments.kafka.text.topic_ids import encode_partition_metadata
from kafka_segments.verbs.copies.divergence.decide.copies import UNBOUNDED, CopyPiece
from kafka_segments.verbs.copies.divergence.log_reading.log_files import (
    CopyFiles,
    WholeSegment,
    open_file,
)
from kafka_segments.verbs.copies.divergence.repair.decide.repairs import Taken

_UNFINISHED = ".unfinished"
_COPY_BYTES = 4 * 1024 * 1024
_MOST_SEGMENT_BYTES = 2**31 - 1
_MOST_OFFSETS = 2**31 - 1


class Span(NamedTuple):
    """Bytes of a copy's segment; they may begin a new segment of the log."""

    path: str
    position: int
    end_position: int
    base_offset: int
    begins: bool


class Proof(NamedTuple):
    """A range of the log: its digest in the copy, and in the new log."""

    copy: str
    from_offset: int
    until_offset: int
    batches: int
    size_bytes: int
    sha256: str


class NewLog(NamedTuple):
    """A log to write.

    Attributes:
        folder: its folder, which does not exist yet.
        taken: what it is made of.
        rolls: offsets at which its segments begin.
        topic_id: for a new ``partition.metadata``; None: none is made.
        now_ms: the clock, by which producers expire, in ms since 1970.
    """

    folder: Path
    taken: Sequence[Taken]
    rolls: Sequence[int]
    topic_id: str | None
    now_ms: int


def write_log(log: NewLog) -> list[Proof]:
    """Write a log into a folder that gets its name once the log is whole and proven.

    1. Segments are copied batch by batch, byte for byte.
    2. Index files, transaction indexes, producer snapshots and leader epochs are those that a
       broker's recovery of these segments writes.
    3. The new segments are read again, with all checksums: their batches must be those that were
       planned, and each range must have the SHA-256 that it had in its copy. ``<folder>.json``
       says so, with the SHA-256 of each file.

    Raises:
        SetAsideError: the new log is not what was planned, or a broker would not load it.
        OSError: a file cannot be read or written.
    """
    unfinished = log.folder.with_name(f"{log.folder.name}{_UNFINISHED}")
    if unfinished.exists():  # of a run that was killed
        shutil.rmtree(unfinished)
    unfinished.mkdir(parents=True)
    proofs, bases = _copied(log, unfinished)
    _add_files(log, unfinished, bases)
    _prove(log, unfinished, bases, proofs)
    files = [state_of(entry).model_dump() for entry in sorted(unfinished.iterdir())]
    manifest = {"ranges": [proof._asdict() for proof in proofs], "files": files}
    noted = log.folder.with_name(f"{log.folder.name}.json")
    remove_temporaries(noted.parent, name=noted.name)
    name_folder(unfinished, log.folder, note=lambda: write_durably(noted, signed(manifest)))
    return proofs


def _copied(log: NewLog, into: Path) -> tuple[list[Proof], list[int]]:
    """Copy the batches; return the proof of each range, and the segments' base offsets."""
    digests = [hashlib.sha256() for _ in log.taken]
    segments: list[tuple[int, list[tuple[int, Span]]]] = []
    for number, span in _spans(log):
        if span.begins:
            segments.append((span.base_offset, []))
        segments[-1][1].append((number, span))
    for base, spans in segments:
        size_bytes = sum(span.end_position - span.position for _, span in spans)
        with durable_file(into / file_name(base, LOG_SUFFIX), size_bytes=size_bytes) as stream:
            for number, span in spans:
                _copy_span(span, stream, digests[number])
    proofs = [
        Proof(
            taken.copy,
            taken.from_offset,
            taken.until_offset,
            len(taken.batches),
            sum(piece.where[0].end_position - piece.where[0].position for piece in taken.batches),
            digest.hexdigest(),
        )
        for taken, digest in zip(log.taken, digests, strict=True)
    ]
    return proofs, [base for base, _ in segments]


def _spans(log: NewLog) -> Iterator[tuple[int, Span]]:
    """Yield the spans to copy, in order, with the number of their range; neighbours are merged."""
    rolls = [*sorted(log.rolls), UNBOUNDED]
    roll, first, size, held = 0, -1, 0, None
    for number, taken in enumerate(log.taken):
        for piece in taken.batches:
            at = piece.where[0]
            length = at.end_position - at.position
            begins = first < 0 or piece.base >= rolls[roll]
            begins = begins or size + length > _MOST_SEGMENT_BYTES
            begins = begins or piece.last - first > _MOST_OFFSETS
            if begins:
                first, size = piece.base, 0
            while rolls[roll] <= piece.base:
                roll += 1
            size += length
            if held is not None:
                before, span = held
                goes_on = (before, span.path, span.end_position) == (number, at.path, at.position)
                if goes_on and not begins:
                    held = before, span._replace(end_position=at.end_position)
                    continue
                yield held
            held = number, Span(at.path, at.position, at.end_position, piece.base, begins)
    if held is not None:
        yield held


def _copy_span(span: Span, stream: BinaryIO, digest: "hashlib._Hash") -> None:
    buffer = memoryview(bytearray(min(_COPY_BYTES, span.end_position - span.position)))
    with open_file(span.path) as read_into:
        at = span.position
        while at < span.end_position:
            view = buffer[: span.end_position - at]
            read = read_into(at, view)
            if not read:
                raise OSError(f"{span.path} ends at byte {at}, it has changed since it was read")
            digest.update(view[:read])
            stream.write(view[:read])
            at += read


def _add_files(log: NewLog, folder: Path, bases: Sequence[int]) -> None:
    """Write what a broker's recovery of the segments leaves."""
    formats, recoverer = FormatFiles(), SegmentRecoverer(RecoveryOptions())
    load = LogLoad(LoadOptions(now_ms=log.now_ms), is_unclean=True)
    if log.topic_id is not None:
        write_durably(folder / PARTITION_METADATA, encode_partition_metadata(log.topic_id))
    for base in bases:
        path = folder / file_name(base, LOG_SUFFIX)
        with open_segment(place(str(path))) as opened:
            found = recoverer.recover(
                opened.read_into, size_bytes=opened.size_bytes, base_offset=base
            )
            made = formats.make(found, opened.read_into, base_offset=base, around=Around())
        damage = found.damage or made.damage
        verdict = load.take(found.summary(base))
        damage = damage or verdict.damage
        if damage is not None:
            raise SetAsideError(path, f"{damage.message}: a broker would not load it")
        for suffix, data in made.files.items():
            if data is not None:
                write_durably(folder / file_name(base, suffix), data)
        aborted = encode_transaction_index(verdict.aborted)
        if aborted:
            write_durably(folder / file_name(base, TXN_INDEX_SUFFIX), aborted)
        if verdict.snapshot is not None:
            write_durably(folder / file_name(base, SNAPSHOT_SUFFIX), verdict.snapshot)
    loaded = load.finish()
    if loaded.leader_epochs is None:
        said = "" if loaded.refused is None else f": {loaded.refused.message}"
        raise SetAsideError(folder, f"a broker would not load it{said}")
    for offset, data in loaded.snapshots.items():
        write_durably(folder / file_name(offset, SNAPSHOT_SUFFIX), data)
    write_durably(folder / LEADER_EPOCHS, loaded.leader_epochs)


def _prove(log: NewLog, folder: Path, bases: Sequence[int], proofs: Sequence[Proof]) -> None:
    """Read the new segments, and compare their batches and the ranges' digests with the plan."""
    files, found = CopyFiles(), []
    for base, following in zip(bases, [*bases[1:], None], strict=True):
        path = folder / file_name(base, LOG_SUFFIX)
        segment = WholeSegment(str(path), base, following, path.stat().st_size)
        found += files.batches("", segment.as_piece())
    planned = [piece for taken in log.taken for piece in taken.batches]
    if [piece.content for piece in found] != [piece.content for piece in planned]:
        raise SetAsideError(
            folder, f"has {len(found)} batches that are not the {len(planned)} that were taken"
        )
    written = _bytes_of(found)
    for proof, taken in zip(proofs, log.taken, strict=True):
        digest = hashlib.sha256()
        for _ in taken.batches:
            digest.update(next(written))
        if digest.hexdigest() != proof.sha256:
            said = f"offsets {proof.from_offset} to {proof.until_offset}"
            raise SetAsideError(folder, f"{said} are not as they are in copy {proof.copy}")


def _bytes_of(batches: Sequence[CopyPiece]) -> Iterator[bytes]:
    """Yield the bytes of each batch of our own segments."""
    for path, of_segment in groupby(batches, key=lambda piece: piece.where[0].path):
        with Path(path).open("rb") as stream:
            for piece in of_segment:
                stream.seek(piece.where[0].position)
                yield stream.read(piece.where[0].end_position - piece.where[0].position)
