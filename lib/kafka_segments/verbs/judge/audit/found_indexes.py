"""Read the index files of a segment: beside it, or from an object of tiered storage."""

from typing import NamedTuple

from kafka_segments.errors import CorruptTextError
from kafka_segments.files.changes.index_files import MOST_INDEX_BYTES
from kafka_segments.files.storage.files import Place, first_line, read_if_there
from kafka_segments.files.storage.links import look_at
from kafka_segments.kafka.broker_rules.index_files.judgement import (
    IndexKind,
    IndexVerdict,
    Judgement,
)
from kafka_segments.kafka.broker_rules.index_files.segment import SEGMENT_SUFFIXES
from kafka_segments.kafka.tier.segment_manifest import (
    MOST_MANIFEST_BYTES,
    SegmentManifest,
    parse_manifest,
)
from kafka_segments.kafka.tier.tiered_names import INDEXES, LOG, MANIFEST
from kafka_segments.verbs.judge.audit.decide.odd_files import judge_odd_file
from kafka_segments.verbs.judge.audit.decide.tiered import PARTS, cut_parts


class FoundIndexes(NamedTuple):
    """The index files of a segment.

    Attributes:
        files: bytes by suffix; None: there is no such file.
        names: the names of the files that hold them, by suffix.
        judged: judgements of files that could not be read.
        manifest: of a tiered segment; None: it cannot be used.
        links: where the links lead that files were read through, by suffix.
    """

    files: dict[str, bytes | None]
    names: dict[str, str]
    judged: list[Judgement]
    manifest: SegmentManifest | None = None
    links: dict[str, str] | None = None


def read_beside(log: Place, *, source: str, follow_into: tuple[str, ...] = ()) -> FoundIndexes:
    """Read the index files beside a segment; links are read as ``links_into`` says."""
    stem = log.path.rpartition("/")[2].removesuffix(LOG)
    names = {suffix: stem + suffix for suffix in SEGMENT_SUFFIXES}
    links: dict[str, str] = {}
    found = FoundIndexes({}, names, [], links=links)
    for suffix in SEGMENT_SUFFIXES:
        odd = look_at(_beside(log, suffix), source=source, follow_into=follow_into)
        if odd is not None and odd.kind == IndexKind.LINK and not odd.reason:
            links[suffix], odd = odd.target, None
        if odd is not None:
            found.files[suffix] = None
            found.judged.append(judge_odd_file(suffix, IndexKind(odd.kind), odd.reason))
            continue
        found.files[suffix], problem = _read(log, suffix)
        found.judged.extend([] if problem is None else [_unreadable(suffix, problem)])
    return found


def read_upload(log: Place) -> FoundIndexes:
    """Read the indexes of a segment in Aiven's layout, cut as its manifest says."""
    stem = log.path.rpartition("/")[2].removesuffix(LOG)
    names = {**dict.fromkeys((*PARTS, INDEXES), stem + INDEXES), MANIFEST: stem + MANIFEST}
    found = FoundIndexes(dict.fromkeys((*PARTS, MANIFEST)), names, [])
    data, problem = _read(log, MANIFEST, MOST_MANIFEST_BYTES)
    if data is None:
        found.judged.append(_unreadable(MANIFEST, problem or f"there is no {names[MANIFEST]}"))
        return found
    found.files[MANIFEST] = data
    try:
        manifest = parse_manifest(names[MANIFEST], data)
    except CorruptTextError as error:
        bad = Judgement(MANIFEST, IndexVerdict.CORRUPT, IndexKind.BAD_CONTENT, error.reason)
        found.judged.append(bad)
        return found
    found = found._replace(manifest=manifest)
    if manifest.is_encrypted:
        return found
    indexes, problem = _read(log, INDEXES)
    if problem is not None:
        found.judged.extend(_unreadable(suffix, problem) for suffix in PARTS)
        return found
    files, judged = cut_parts(manifest, indexes)
    found.files.update(files)
    found.judged.extend(judged)
    return found


def _read(
    log: Place, suffix: str, most_bytes: int = MOST_INDEX_BYTES
) -> tuple[bytes | None, str | None]:
    """Read a file beside a log; return its bytes if there is one, and why it cannot be read."""
    try:
        return read_if_there(_beside(log, suffix), most_bytes=most_bytes), None
    except OSError as error:
        return None, first_line(error)


def _beside(log: Place, suffix: str) -> Place:
    return log._replace(path=log.path.removesuffix(LOG) + suffix)


def _unreadable(suffix: str, why: str) -> Judgement:
    return Judgement(suffix, IndexVerdict.UNJUDGED, IndexKind.UNREADABLE, why)
