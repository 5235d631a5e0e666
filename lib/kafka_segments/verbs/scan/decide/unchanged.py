"""Which listed segments are as table ``segments`` has them, told without Spark.

Most segments have not changed since the last run. Leaving them out by Arrow takes a tenth of the
time that Spark needs to list and join them; ``scan.decide.plan`` decides the others. A dry run
(``scan.dry_run``) asks in plain Python, as Arrow imports pandas for the first value it is handed.
The tests draw listings, and hold all three against each other.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_segments.engine.tables.keys import SEGMENT_KEYS
from kafka_segments.files.folders import kinds

COMPARED = (*SEGMENT_KEYS, "path", "fingerprint", "is_active", "vanished_at")
"""What is compared of the rows of ``segments``."""


OptionsInWords = str | Callable[[str, int, str], str]


def fingerprint_columns(*, needs_next: bool) -> tuple[str, ...]:
    """Name what a fingerprint has of a listed segment, before what it says of the options.

    Joined by slashes, without what is null. ``needs_next``: the next segment counts, too.
    """
    return ("size_bytes", "mtime_ns", *(["next_base_offset"] if needs_next else []))


class Unlike(NamedTuple):
    """What is left of a listing and of the rows of ``segments``, and how many rows agreed."""

    listed: pa.Table
    known: pa.Table
    same: int


def lies_below(paths: pa.ChunkedArray, sources: Sequence[str]) -> pa.ChunkedArray:
    """Tell whether paths are among the sources or lie below one, as ``sources.broker_identity``."""
    below = pa.chunked_array([pa.repeat(pa.scalar(False), len(paths))])
    for source in sources:
        is_there = pc.starts_with(paths, source.rstrip("/") + "/")
        below = pc.or_(below, pc.or_(is_there, pc.equal(paths, source)))
    return below


class Identity(NamedTuple):
    """What a build says of all segments; None: as meta.properties of their log_dir says."""

    cluster: str | None
    broker_id: int | None


def without_unchanged(
    listed: pa.Table,
    known: pa.Table,
    *,
    options: OptionsInWords,
    needs_next: bool,
    identity: Identity,
) -> Unlike:
    """Leave out what ``plan_scan`` would mark as ``same``, and the known rows of that.

    Args:
        listed: rows of a listing, whole.
        known: rows of ``segments`` with ``COMPARED``.
        options: what a fingerprint says of the options, of all or by cluster, broker id and topic.
        needs_next: whether the next segment's base offset counts like the size.
        identity: the cluster and the broker of all segments.
    """
    number = pc.index_in(_paths(listed), value_set=known["path"])
    is_same = pc.and_(
        pc.equal(listed["kind"], kinds.SEGMENT), pc.is_null(known["vanished_at"].take(number))
    )
    for name, values in _as_known(listed, identity, options, needs_next=needs_next):
        is_same = pc.and_(is_same, pc.equal(values, known[name].take(number)))
    is_same = pc.fill_null(is_same, False)
    is_unlike = np.ones(len(known), dtype=bool)
    is_unlike[number.filter(is_same).to_numpy()] = False
    left = listed.filter(pc.invert(is_same))
    return Unlike(left, known.filter(pa.array(is_unlike)), len(listed) - len(left))


def _as_known(
    listed: pa.Table,
    identity: Identity,
    options: OptionsInWords,
    *,
    needs_next: bool,
) -> Iterator[tuple[str, Any]]:
    """Yield what is to be compared, with its column of ``segments``; one at a time, as it is large.

    Rows that are no segment have some, too.
    """
    for name in (*SEGMENT_KEYS[2:], "is_active"):
        yield name, listed[name]
    brokers = _brokers(listed.filter(pc.equal(listed["kind"], kinds.LOG_DIR)))
    cluster = _by_log_dir(listed, 0, brokers, identity.cluster, default="")
    broker_id = _by_log_dir(listed, 1, brokers, identity.broker_id, default=-1)
    yield "cluster", cluster
    yield "broker_id", broker_id
    in_words = _in_words(cluster, broker_id, listed["topic"], options)
    yield "fingerprint", _fingerprints(listed, in_words, needs_next=needs_next)


def of_logs(listed: pa.Table, changed: Sequence[pa.Table]) -> pa.Table:
    """Leave out the segments of a listing whose logs have no row in ``changed``.

    Args:
        listed: rows of a listing.
        changed: rows with ``log_dir``, ``topic`` and ``partition``.
    """
    logs = pa.concat_arrays([chunk for rows in changed for chunk in _logs(rows).chunks])
    is_of_log = pc.is_in(_logs(listed), value_set=logs)
    return listed.filter(pc.or_(is_of_log, pc.not_equal(listed["kind"], kinds.SEGMENT)))


def _logs(rows: pa.Table) -> pa.ChunkedArray:
    """Return a text for each row that tells its log from all others in its log directory."""
    partition = rows["partition"].cast(pa.string())
    return pc.binary_join_element_wise(rows["log_dir"], rows["topic"], partition, "/")


def _paths(found: pa.Table) -> pa.ChunkedArray:
    """Return the paths of files, as ``file_path`` of ``sources.broker_identity`` joins them."""
    root = pc.if_else(pc.equal(found["source"], "/"), "", found["source"])
    below = [
        pc.if_else(pc.equal(found[name], ""), None, found[name])
        for name in ("relative_path", "name")
    ]
    return pc.binary_join_element_wise(root, *below, "/", null_handling="skip")


def _in_words(
    cluster: Any, broker_id: Any, topics: pa.ChunkedArray, options: OptionsInWords
) -> Any:
    """Return what the fingerprints of rows say of the options: one text for all, or one a row."""
    if isinstance(options, str):
        return options
    count = len(topics)
    of_row = {"cluster": cluster, "broker_id": broker_id, "topic": topics}
    columns = {
        name: pa.repeat(values, count) if isinstance(values, pa.Scalar) else values
        for name, values in of_row.items()
    }
    rows = pa.table(columns | {"place": np.arange(count)})
    groups = rows.group_by(list(of_row), use_threads=False).aggregate([("place", "list")])
    places = groups["place_list"].combine_chunks()
    lengths = pc.list_value_length(places).to_numpy()
    number = np.empty(count, dtype=np.int64)
    number[places.flatten().to_numpy()] = np.repeat(np.arange(len(groups)), lengths)
    texts = [  # "" for rows that are no segments: Arrow's join of nulls alone would drop the row
        "" if row["topic"] is None else options(row["cluster"], row["broker_id"], row["topic"])
        for row in groups.select(list(of_row)).to_pylist()
    ]
    return pa.array(texts, pa.string()).take(pa.array(number))


def _fingerprints(found: pa.Table, options: Any, *, needs_next: bool) -> pa.ChunkedArray:
    """Return what ``plan_scan`` compares of segments."""
    names = fingerprint_columns(needs_next=needs_next)
    parts = [found[name].cast(pa.string()) for name in names]
    return pc.binary_join_element_wise(*parts, options, "/", null_handling="skip")


def _brokers(log_dirs: pa.Table) -> dict[str, tuple[str | None, int | None]]:
    """Return cluster and broker id of each log directory, as its meta.properties says them."""
    rows = log_dirs.select(["log_dir", "meta"]).to_pylist()
    return {
        row["log_dir"]: (row["meta"]["cluster_id"], row["meta"]["node_id"])
        for row in rows
        if row["meta"] is not None
    }


def _by_log_dir(
    found: pa.Table,
    part: int,
    brokers: dict[str, tuple[str | None, int | None]],
    given: Any,
    *,
    default: Any,
) -> Any:
    """Return a value for each row: as given, else that of its log_dir, else the default."""
    kind = pa.scalar(default).type if isinstance(default, str) else pa.int32()
    if given is not None:
        return pa.scalar(given, kind)
    of_brokers = pa.array([broker[part] for broker in brokers.values()], kind)
    number = pc.index_in(found["log_dir"], value_set=pa.array(brokers, pa.string()))
    return pc.fill_null(of_brokers.take(number.combine_chunks()), default)
