"""Which listed segments are as table ``segments`` has them, told without Spark.

A run finds most segments as they were. To leave them out here takes a tenth of the time in which
Spark is told of them and joins them; what is left, ``build.decide.plan`` decides.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_segments.sources import kinds
from kafka_segments.tables.keys import SEGMENT_KEYS

COMPARED = (*SEGMENT_KEYS, "path", "fingerprint", "is_active", "vanished_at")
"""What is compared of the rows of ``segments``."""


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


def without_unchanged(
    listed: pa.Table,
    known: pa.Table,
    *,
    options: str,
    needs_next: bool,
    cluster: str | None,
    broker_id: int | None,
) -> Unlike:
    """Leave out what ``plan_scan`` would mark as ``same``, and the known rows of that.

    Args:
        listed: rows of a listing, whole.
        known: rows of ``segments`` with ``COMPARED``.
        options: what the fingerprint says of the options.
        needs_next: whether the next segment's base offset counts like the size.
        cluster: the cluster of all segments; None: as meta.properties of their log_dir says.
        broker_id: the broker of all segments; None likewise.
    """
    is_segment = pc.equal(listed["kind"], kinds.SEGMENT)
    found = listed.filter(is_segment)
    number = pc.index_in(_paths(found), value_set=known["path"])
    before = known.select([name for name in COMPARED if name != "path"]).take(number)
    brokers = _brokers(listed.filter(pc.equal(listed["kind"], kinds.LOG_DIR)))
    now = {
        **{name: found[name] for name in SEGMENT_KEYS[2:]},
        "cluster": _by_log_dir(found, 0, brokers, cluster, default=""),
        "broker_id": _by_log_dir(found, 1, brokers, broker_id, default=-1),
        "fingerprint": _fingerprints(found, options, needs_next=needs_next),
        "is_active": found["is_active"],
    }
    is_same = pc.is_null(before["vanished_at"])
    for name, values in now.items():
        is_same = pc.and_(is_same, pc.equal(values, before[name]))
    is_same = pc.fill_null(is_same, False)
    is_left = pc.invert(is_same)
    left = pa.concat_tables([listed.filter(pc.invert(is_segment)), found.filter(is_left)])
    is_unlike = np.ones(len(known), dtype=bool)
    is_unlike[number.filter(is_same).to_numpy()] = False
    return Unlike(left, known.filter(pa.array(is_unlike)), len(found) - pc.sum(is_left).as_py())


def _paths(found: pa.Table) -> pa.ChunkedArray:
    """Return the paths of files, as ``file_path`` of ``sources.broker_identity`` joins them."""
    root = pc.if_else(pc.equal(found["source"], "/"), "", found["source"])
    below = [
        pc.if_else(pc.equal(found[name], ""), None, found[name])
        for name in ("relative_path", "name")
    ]
    return pc.binary_join_element_wise(root, *below, "/", null_handling="skip")


def _fingerprints(found: pa.Table, options: str, *, needs_next: bool) -> pa.ChunkedArray:
    """Return what ``plan_scan`` compares of segments."""
    depends_on = ["size_bytes", "mtime_ns", *(["next_base_offset"] if needs_next else [])]
    parts = [found[name].cast(pa.string()) for name in depends_on]
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
