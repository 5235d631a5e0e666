"""What lies beside the copies of a cluster's metadata log: who votes, and up to which epoch.

Source: FileQuorumStateStore, QuorumStateData (``currentVoters`` in version 0; later ones leave the
voters to records).
"""

import json
from typing import Any, NamedTuple

from kafka_segments.errors import CorruptTextError, SourceError
from kafka_segments.files.storage.files import list_folder, place, read_whole
from kafka_segments.kafka.broker_rules.start.metadata_facts import voter_ids
from kafka_segments.kafka.text.checkpoints import LEADER_EPOCHS, EpochStart, parse_leader_epochs
from kafka_segments.kafka.text.names import LOG_SUFFIX, METADATA_TOPIC, QUORUM_STATE

_MOST_BYTES = 64 * 1024 * 1024


class QuorumFiles(NamedTuple):
    """What lies beside a copy of the metadata log now; None: it is not there, or not readable.

    Attributes:
        sizes: the size of each file by its name; empty: the folder cannot be listed.
        epoch: the leader epoch that its node has voted or followed in last.
        voters: the ids of the nodes that vote.
        last: the last leader epoch in which its node has appended records, and its first offset.
    """

    sizes: dict[str, int]
    epoch: int | None = None
    voters: tuple[int, ...] | None = None
    last: EpochStart | None = None

    @property
    def greatest_epoch(self) -> int | None:
        """The last leader epoch that these files know; None: they do not tell."""
        if self.epoch is None:
            return None
        return max(self.epoch, -1 if self.last is None else self.last.epoch)

    @property
    def last_segment(self) -> str | None:
        """The name of the last segment that has any bytes; empty: none has."""
        names = (name for name, size in self.sizes.items() if name.endswith(LOG_SUFFIX) and size)
        return max(names, default="") if self.sizes else None


def read_quorum_files(log_dir: str, partition: int) -> QuorumFiles:
    """Read what lies beside a copy of the metadata log in a log directory, given as a URI.

    A link may lead to what is none of it: its file counts as not there.
    """
    folder = place(log_dir).child(f"{METADATA_TOPIC}-{partition}")
    try:
        entries = list_folder(folder)
    except SourceError:
        return QuorumFiles({})

    plain = {one.name for one in entries if not one.is_folder and one.oddity is one.link is None}

    def read(name: str) -> str | None:
        if name not in plain:
            return None
        try:
            return read_whole(folder.child(name), most_bytes=_MOST_BYTES).decode("utf-8")
        except (OSError, UnicodeDecodeError, CorruptTextError):
            return None

    sizes = {entry.name: entry.size_bytes for entry in entries}
    epoch, voters = parse_quorum_state(read(QUORUM_STATE))
    return QuorumFiles(sizes, epoch, voters, _last_epoch(read(LEADER_EPOCHS)))


def parse_quorum_state(text: str | None) -> tuple[int | None, tuple[int, ...] | None]:
    """Return leader epoch and voters of a ``quorum-state``; None: it does not tell."""
    try:
        state: Any = json.loads(text or "")
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(state, dict):
        return None, None
    epoch, voters = state.get("leaderEpoch"), state.get("currentVoters")
    return epoch if isinstance(epoch, int) else None, voter_ids(voters)


def _last_epoch(text: str | None) -> EpochStart | None:
    if text is None:
        return None
    try:
        entries = parse_leader_epochs(text)
    except CorruptTextError:
        return None
    return entries[-1] if entries else None
