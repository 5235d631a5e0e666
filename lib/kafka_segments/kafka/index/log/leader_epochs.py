"""The leader epochs of a log, as recovery finds them: which epoch begins at which offset.

Source: LeaderEpochFileCache, LogSegment.recover (2.7 and later).
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from kafka_segments.kafka.text.checkpoints import EpochStart


def are_rising(epochs: Sequence[EpochStart]) -> bool:
    """Tell whether each entry has a later epoch and offset than the one before: a broker's have."""
    return all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(epochs))


def fold_epochs(known: Sequence[EpochStart], found: Iterable[EpochStart]) -> list[EpochStart]:
    """Add the epochs that a segment's batches show, in their order.

    An epoch that is not above the latest is passed over. Before an epoch is added, entries that do
    not begin before it are removed from the end: there are some where offsets go back.
    """
    epochs = list(known)
    for epoch, start_offset in found:
        if epochs and epoch <= epochs[-1].epoch:
            continue
        while epochs and epochs[-1].start_offset >= start_offset:
            epochs.pop()
        epochs.append(EpochStart(epoch, start_offset))
    return epochs


def truncate_epochs_from_end(epochs: Sequence[EpochStart], end_offset: int) -> list[EpochStart]:
    """Drop the entries at and above the log end offset."""
    kept = list(epochs)
    while kept and kept[-1].start_offset >= end_offset:
        kept.pop()
    return kept


def truncate_epochs_from_start(epochs: Sequence[EpochStart], start_offset: int) -> list[EpochStart]:
    """Keep the last entry at or below the log start offset, and let it begin at that offset."""
    before = [entry for entry in epochs if entry.start_offset <= start_offset]
    after = [entry for entry in epochs if entry.start_offset > start_offset]
    return [EpochStart(before[-1].epoch, start_offset), *after] if before else after


def encode_leader_epochs(epochs: Sequence[EpochStart]) -> bytes:
    """Write the bytes of a ``leader-epoch-checkpoint`` file."""
    lines = ["0", str(len(epochs)), *(f"{epoch} {start}" for epoch, start in epochs)]
    return "".join(f"{line}\n" for line in lines).encode()
