"""Which records of a cluster's copies of the metadata log count: those that are committed."""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.derived.metadata_in_tables import MetadataProblem
from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.keys import LOG_KEYS
from kafka_segments.kafka.broker_rules.start.metadata_facts import voter_ids
from kafka_segments.verbs.find.internals.metadata.decide.agreement import (
    COPIES,
    Agreement,
    find_agreement,
    is_of,
)
from kafka_segments.verbs.find.internals.metadata.quorum import QuorumFiles, read_quorum_files

_NAMES_VOTERS = ("VotersRecord", "LeaderChangeMessage")


class Copy(NamedTuple):
    """A copy of the metadata log, and what lies beside it now.

    ``row``: what ``sum_metadata_logs`` gives of it.
    """

    row: Any
    files: QuorumFiles

    @property
    def keys(self) -> tuple[Any, ...]:
        """What names the log."""
        return tuple(self.row[key] for key in LOG_KEYS)

    @property
    def is_at_hand(self) -> bool:
        """Whether it lies there as it was read; one that has grown may lack less."""
        is_same = self.files.sizes.get(self.row["last_file"]) == self.row["last_size"]
        return is_same and self.row["damage"] is None

    @property
    def is_read_up(self) -> bool:
        """Whether nothing lies in it now that was not read."""
        return self.is_at_hand and self.files.last_segment == (self.row["last_file"] or "")

    @property
    def denied_from_epoch(self) -> int | None:
        """The first leader epoch that its node has never been in; None: none in its log."""
        greatest, found = self.files.greatest_epoch, self.row["log_epoch"]
        return None if greatest is None or found is None or found <= greatest else greatest + 1

    def text(self) -> str:
        """Name it."""
        return f"broker {self.row['broker_id']} ({self.row['log_dir']})"


def copies_of(rows: Iterable[Any]) -> list[Copy]:
    """Look at what lies beside each copy; ``rows``: of ``sum_metadata_logs``."""
    return [Copy(row, read_quorum_files(row["log_dir"], row["partition"])) for row in rows]


def without_denied(
    records: DataFrame, copies: Sequence[Copy]
) -> tuple[DataFrame, list[MetadataProblem]]:
    """Leave out the records of leader epochs that the files beside their log deny.

    A node writes an epoch into quorum-state before it appends a record in it.
    """
    problems, is_denied = [], F.lit(False)
    for copy in copies:
        epoch = copy.denied_from_epoch
        if epoch is None:
            continue
        denied = is_of(copy.keys) & ~F.col("is_snapshot") & (F.col("leader_epoch") >= epoch)
        offset = records.where(denied).agg(F.min("offset")).collect()[0][0]
        is_denied |= F.coalesce(denied, F.lit(False))
        text = (
            f"offset {offset} and what follows in the copy of {copy.text()} are of leader epoch"
            f" {copy.row['log_epoch']}, and its quorum-state and leader-epoch-checkpoint know none"
            f" above {epoch - 1}: not committed, and left out"
        )
        problems.append(MetadataProblem(copy.row["cluster"], offset, text))
    return (records.where(~is_denied) if problems else records), problems


def without_uncommitted(
    records: DataFrame, copies: Sequence[Copy]
) -> tuple[DataFrame, list[MetadataProblem]]:
    """Leave out the ends of copies that are not committed, or that others contradict.

    A cluster with one copy has nothing to be held against.
    """
    several = [copy for copy in copies if copy.row["last_offset"] is not None]
    clusters = {copy.row["cluster"] for copy in several}
    of_cluster = {name: [one for one in several if one.row["cluster"] == name] for name in clusters}
    compared = [ones for ones in of_cluster.values() if len(ones) > 1]
    if not compared:
        return records, []
    numbered = dict(enumerate(copy for ones in compared for copy in ones))
    numbers = {copy.keys: number for number, copy in numbered.items()}
    voting = {ones[0].row["cluster"]: _voting(records, ones) for ones in compared}
    rows = [
        (
            *copy.keys,
            number,
            copy.row["first_offset"],
            [
                {"copy": numbers[voter.keys], "first_offset": voter.row["first_offset"]}
                for voter in voting[copy.row["cluster"]]
            ],
        )
        for number, copy in numbered.items()
    ]
    table = local_rows(records.sparkSession, rows, COPIES)
    found = [
        Agreement(**row.asDict()) for row in records.transform(find_agreement(table)).collect()
    ]
    problems = [
        problem
        for ones in compared
        for problem in _problems(
            [(numbered[one.copy], one) for one in found if numbered[one.copy] in ones],
            len(voting[ones[0].row["cluster"]]),
        )
    ]
    ends = [(numbered[one.copy], one.end_offset) for one in found if one.end_offset is not None]
    return _before(records, ends), problems


def _voting(records: DataFrame, copies: Sequence[Copy]) -> list[Copy]:
    """Return the copies at hand that are of voters; none where nothing names the voters."""
    told = [copy.files for copy in copies if copy.files.voters is not None]
    last = max(told, key=lambda files: files.epoch or -1, default=None)
    voters = _voters_of_records(records, copies) if last is None else last.voters
    return [copy for copy in copies if copy.row["broker_id"] in (voters or ()) and copy.is_at_hand]


def _voters_of_records(records: DataFrame, copies: Sequence[Copy]) -> tuple[int, ...] | None:
    voters = F.get_json_object("value_json", "$.voters")
    of_cluster = F.col("cluster") == copies[0].row["cluster"]
    named = records.where(of_cluster & F.col("kind").isin(*_NAMES_VOTERS) & ~F.col("is_snapshot"))
    found = named.agg(F.max_by(F.from_json(voters, "array<struct<voterId:int>>"), "offset"))
    rows = found.collect()[0][0]
    return voter_ids([row.asDict() for row in rows]) if rows else None


def _problems(found: Sequence[tuple[Copy, Agreement]], voters: int) -> Iterator[MetadataProblem]:
    """Say which ends are not committed, and which copies contradict each other.

    An end says nothing new where only records that change no state are in it. It is settled where
    other records are committed in its place.
    """
    end = max(
        agreement.end_offset if agreement.end_offset is not None else copy.row["last_offset"] + 1
        for copy, agreement in found
    )
    for copy, (_, lacked, _, _, says_until) in found:
        if lacked is not None and lacked == end and says_until is not None and says_until >= lacked:
            text = (
                f"offsets {lacked} to {copy.row['last_offset']} in the copy of {copy.text()} are"
                f" not committed: a majority of the {voters} voters' copies at hand lacks them. The"
                " history ends before them"
            )
            yield MetadataProblem(copy.row["cluster"], lacked, text)
    contradicted = [
        (one.contradicted_at, copy) for copy, one in found if one.contradicted_at is not None
    ]
    if contradicted:
        offset = min(offset for offset, _ in contradicted)
        names = " and ".join(copy.text() for at, copy in contradicted if at == offset)
        text = (
            f"the copies of {names} contradict each other: other records at offset {offset} in the"
            " same leader epoch. Only what more than half of them have counts"
        )
        yield MetadataProblem(contradicted[0][1].row["cluster"], offset, text)


def _before(records: DataFrame, ends: Sequence[tuple[Copy, int]]) -> DataFrame:
    if not ends:
        return records
    cut: list[Column] = [
        is_of(copy.keys) & ~F.col("is_snapshot") & (F.col("offset") >= end) for copy, end in ends
    ]
    return records.where(~F.coalesce(reduce(Column.__or__, cut), F.lit(False)))
