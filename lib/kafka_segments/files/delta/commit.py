"""Commits that we write to the log of a Delta table ourselves: what all of them say, and how.

The library deltalake, which reads the log, writes none: it waits for no disk (1.6.6 only renames
and links what it wrote), and a commit could have 0 bytes after a loss of power. It refuses tables
that are clustered.

Source: delta-io/delta PROTOCOL.md, Delta Log Entries, Commit Provenance Information.
"""

import json
import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from pyarrow import fs

from kafka_segments.files.delta.log import log_of
from kafka_segments.files.storage.durable_files import write_durably
from kafka_segments.files.storage.files import Place
from kafka_segments.files.storage.folder_lock import commit_lock
from kafka_segments.files.storage.publishing import publish

ENGINE = "kafka-segments"
"""Who a commit of ours says has made it, and what signs one that Delta makes of our statement."""
SIGNED = "userMetadata"
"""Where Delta keeps the signature: docs.delta.io, Define custom metadata in commits."""
_NOT_MEASURED: Mapping[str, str] = MappingProxyType({})


def commit_info(
    operation: str,
    parameters: Mapping[str, Any],
    *,
    read_version: int | None,
    is_blind: bool = False,
    metrics: Mapping[str, str] = _NOT_MEASURED,
) -> dict[str, Any]:
    """Return the action by which a commit says what it did, in Delta's words.

    Args:
        operation: what Delta calls it, such as ``MERGE``.
        parameters: those of the operation.
        read_version: the version that the commit goes by; None: there is none yet.
        is_blind: the commit depends on nothing that the table has.
        metrics: counts of the operation.
    """
    read = {} if read_version is None else {"readVersion": read_version}
    return {
        "commitInfo": {
            "timestamp": time.time_ns() // 1_000_000,
            "operation": operation,
            "operationParameters": dict(parameters),
            **read,
            "isolationLevel": "Serializable",
            "isBlindAppend": is_blind,
            "operationMetrics": dict(metrics),
            "engineInfo": ENGINE,
            SIGNED: ENGINE,
        }
    }


def publish_commit(uri: str, version: int, actions: Iterable[Mapping[str, Any]]) -> None:
    """Write a commit of the table at a URI, an action a line; wait for commits of other runs.

    Raises:
        FileExistsError: another writer has made that version.
    """
    text = "".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions)
    with commit_lock(uri):
        publish_once(log_of(uri).child(f"{version:020d}.json"), text.encode("utf-8"))


def publish_once(target: Place, data: bytes) -> None:
    """Write a file that appears whole, and replaces none.

    A store other than a local disk is asked before the file is written, as Delta's own writer does.

    Raises:
        FileExistsError: there is one of that name.
    """
    if target.store.is_local:
        write_durably(target.path, data, replaces=False)
        return
    if target.filesystem.get_file_info(target.path).type != fs.FileType.NotFound:
        raise FileExistsError(target.path)
    publish(target, data)
