"""Every limit by which an engine is chosen: what is few, little or small, in rows and bytes.

Each was found by trying both engines on this side and on that. Nothing of Spark is imported here:
some are asked before there is a session.
"""

from enum import Enum, auto
from typing import NamedTuple

OPEN_COST_BYTES = 1024 * 1024
"""What opening a segment and writing its files costs, in bytes read in that time."""
MOST_ROWS = 50_000
"""A small table has no more rows."""
MOST_IN_DRIVER = 256
"""The driver works on no more rows; for more, parallel tasks are quicker."""
MOST_UNCHANGED = 1_500_000
"""The driver reads columns of ``segments``, to find few rows among so many at most.

A million rows, with a million of a listing, take 0.75 GiB.
"""
MOST_READ_IN_DRIVER = 64 * 1024**2
"""The driver judges the files of so many bytes sooner than other processes are started."""
MOST_DIGESTED_IN_DRIVER = 512 * 1024**2
"""The driver digests so many bytes in half a second."""
MOST_SEARCHED_IN_DRIVER = 16 * 1024**2
"""The driver looks for records in so many bytes, which costs more than to judge them."""
MOST_UNLIKE = 50_000
"""A build works on so many rows of a larger listing as on few."""
LISTED_IN_DRIVER = 200_000
"""The driver lists so many files, 200 MiB at most; a Spark job a level of folders takes longer."""
_LITTLE_BYTES = 128 * 1024**2
_ANY = 2**63

SMALL_TABLE_BYTES = 4 * 1024**2
SMALL_TABLE_FILES = 500
"""Arrow reads and merges tables of so much on local disks, which are small."""
SMALL_ROWS_BYTES = 16 * 1024**2
"""So many bytes their rows may take in memory."""
JOINED_EVERY_VERSIONS, LEAST_JOINED_FILES = 20, 10
"""Their files are joined every so many versions, if there are so many."""
COLUMNS_BYTES = 4 * 1024**3
"""Columns of larger tables, of which few rows are looked for, are read of files of so much."""
METADATA_BYTES, METADATA_FILES, METADATA_ROWS = 256 * 1024**2, 10_000, 10_000_000
"""The rows of a cluster's metadata are looked through without a session in tables of so much."""
SEGMENT_LOG_BYTES, SEGMENT_FILES, SEGMENT_ROWS = 1024**3, 1_000, 10_000_000
"""So are the names of logs in tables ``segments`` of so much, where there is no table ``logs``."""
LOGS_BYTES = 64 * 1024**2
"""So are tables ``logs`` of so much."""

MUCH_WAREHOUSE_BYTES = 32 * 1024**2
"""Work on whole tables of so much takes minutes, in which the JVM's second compiler pays."""
LITTLE_WAREHOUSE_BYTES = 4 * 1024**2
"""To compile a query of tables of so much costs more than to run it."""
MANY_QUESTIONS_BYTES = 4 * 1024**2
"""A file of some 100,000 questions: to answer them takes minutes."""


class Load(NamedTuple):
    """How much there is to read."""

    segments: int = 0
    bytes: int = 0

    @property
    def weight(self) -> int:
        """Bytes, with the cost of opening each segment."""
        return self.bytes + self.segments * OPEN_COST_BYTES

    @property
    def is_little(self) -> bool:
        """So little that the driver reads it sooner than processes for it have started."""
        return self.weight <= _LITTLE_BYTES

    def is_within(self, most: "Load") -> bool:
        """So much at most, by the number of segments and by bytes."""
        return self.segments <= most.segments and self.bytes <= most.bytes


class Work(Enum):
    """The kinds of work that have a limit of their own for what counts as few."""

    ROWS = auto()
    """Rows are joined and written: of files that were listed, of an index."""
    BUILD = auto()
    """Segments are read to their end, and told of in the tables."""
    COMPARE = auto()
    """Copies are listed and held against each other."""
    DIGESTS = auto()
    """The digests of copies are compared."""
    DECODE = auto()
    """Records of internal topics are decoded."""
    LIST = auto()
    """Folders of a tier are listed, segments paired: each costs as much as opening a file."""


MOST = {
    Work.ROWS: Load(MOST_ROWS, _ANY),
    Work.BUILD: Load(MOST_ROWS, 16 * 1024**3),  # more can tell more of transactions than fits
    Work.COMPARE: Load(10_000, 128 * 1024**3),  # the digests of so much are some ten MB
    Work.DIGESTS: Load(_ANY, 4 * 1024**3),  # more are sooner compared by compiled plans
    Work.DECODE: Load(_ANY, 4 * 1024**2),  # some 50,000 records
}
"""The most that counts as few rows; of ``Work.LIST`` what ``Load.is_little`` says."""

SMALL_SOURCES = Load(10_000, 64 * 1024**2)
"""Reading so much costs less than compiling a query for it; rows of a listing count."""
