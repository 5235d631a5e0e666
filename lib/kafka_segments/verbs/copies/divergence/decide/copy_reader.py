"""What a comparison asks of the files of copies, where digests do not tell."""

from collections.abc import Sequence
from typing import Protocol

from kafka_segments.verbs.copies.divergence.decide.copies import CopyPiece
from kafka_segments.verbs.copies.divergence.decide.record_fields import HeldRecords


class CopyReader(Protocol):
    """Reads what digests do not tell."""

    def batches(self, copy: str, piece: CopyPiece) -> Sequence[CopyPiece]:
        """Return the sound batches of a piece, each as a piece of its own."""

    def records(self, copy: str, piece: CopyPiece) -> HeldRecords | None:
        """Return the records of a batch; None: they cannot be decoded."""
