"""What recovery depends on, apart from its compiled code: who only asks does not wait for that."""

from dataclasses import dataclass

FULL, HEADERS, INDEX = "full", "headers", "index"
"""How much of a segment is read: all bytes, all headers, or what ``first_look`` says."""


@dataclass(frozen=True)
class RecoveryOptions:
    """The broker settings that recovery depends on, and how much to verify."""

    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 * 1024 * 1024
    check_crc: bool = True
    by_instruction: bool | None = None
    """CRC-32C by the CPU's instruction; None: where there is one."""
    is_load: bool = False
    """The segment is recovered as part of its log's load, which does not read it all back."""
    finds_indexes: bool = False
    """A start finds index files; else it makes them, which fails below the size of an entry."""
    digest_bits: int = 0
    """Ranges of 2^``digest_bits`` offsets are digested, too; 0: none are."""

    @property
    def checked(self) -> str:
        """How much of a segment is read by a recovery, in one word."""
        return FULL if self.check_crc else HEADERS
