"""Weigh the replicas of each partition, in the executors."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    StructType,
)

from kafka_segments.engine.frames.row_types import row_fields
from kafka_segments.engine.tables.keys import Transform
from kafka_segments.verbs.copies.divergence.decide.copies import Copy, CopyPiece
from kafka_segments.verbs.copies.divergence.decide.logs import compare_log
from kafka_segments.verbs.copies.divergence.decide.overlaps import PiecesByCopy
from kafka_segments.verbs.copies.divergence.elect.decide.candidates import (
    Candidate,
    PartitionCopies,
    Registration,
    Term,
)
from kafka_segments.verbs.copies.divergence.elect.decide.elections import Advice, advise
from kafka_segments.verbs.copies.divergence.log_reading.batch_facts import BatchFactsReader
from kafka_segments.verbs.copies.divergence.log_reading.log_files import CopyFiles
from kafka_segments.verbs.copies.divergence.tasks_by_log import map_logs
from kafka_segments.verbs.copies.divergence.tasks_logs import copy_of, keyed_logs

CANDIDATES = StructType(
    row_fields(
        "topic string, partition int, rank int, broker_id int, copy string, end_offset long,"
        " leader_epoch int, is_in_isr boolean, is_in_elr boolean, lost_records long,"
        " lost_acks_all_records long, lost_committed_records long, first_lost_offset long,"
        " torn_transactions long, damages long, way string, hold_back array<int>,"
        " replicas array<int>, absent array<int>, elects_any boolean"
    )
)


def weigh_replicas(parts: DataFrame) -> Transform:
    """Weigh the replicas of each partition; batches are read where digests of ranges differ.

    A file that can no longer be read fails the run: advice by a part of the records would mislead.

    Needs: rows of ``decide.frames.described`` with broker_id and what the metadata log has: isr,
        elr, registered (the replicas), terms (array of epoch, leader, members) and elects_any
        (unclean.leader.election.enable), absent (``with_logs_at_hand``), and segments (rows of
        ``decide.frames.segments_of_copies``); ``parts``: rows of ``decide.frames.unequal_parts``.
    Gives: ``CANDIDATES``, a row for each replica, the best with rank 1; replicas is the order to
        give them first, empty where it is right.
    """

    def weigh(
        rows: Sequence[dict[str, Any]], ranges: Sequence[dict[str, CopyPiece]]
    ) -> list[dict[str, Any]]:
        advice = _advice(rows, ranges)
        return [
            {
                "rank": number,
                **_row(candidate),
                "way": advice.way.value,
                "hold_back": advice.hold_back,
                "replicas": advice.replicas,
                "absent": rows[0]["absent"],
                "elects_any": rows[0]["elects_any"],
            }
            for number, candidate in enumerate(advice.candidates, start=1)
        ]

    return map_logs(parts, weigh, CANDIDATES)


def _advice(rows: Sequence[dict[str, Any]], ranges: Sequence[dict[str, CopyPiece]]) -> Advice:
    copies = {row["broker_id"]: copy_of(row) for row in rows}
    described = sorted(copies.values())
    files = CopyFiles(check_crc=False)  # what is damaged is no part of a range
    compared = compare_log(described, ranges, files, keyed_logs(rows, check_crc=False))
    replicas, isr, elr, absent = (
        tuple(rows[0][name]) for name in ("registered", "isr", "elr", "absent")
    )
    terms = (Term(one["epoch"], one["leader"], tuple(one["members"])) for one in rows[0]["terms"])
    registered = Registration(replicas, isr, elr, tuple(terms), rows[0]["elects_any"], absent)
    with BatchFactsReader() as facts:
        found = PartitionCopies(copies, _batches(described, ranges, files), compared)
        return advise(registered, found, facts.of)


def _batches(
    copies: Sequence[Copy], ranges: Sequence[dict[str, CopyPiece]], files: CopyFiles
) -> PiecesByCopy:
    held: PiecesByCopy = {copy.name: [] for copy in copies}
    for found in ranges:
        for name, piece in found.items():
            held[name] += files.batches(name, piece)
    return held


def _row(candidate: Candidate) -> dict[str, Any]:
    values = candidate._asdict()
    values["end_offset"], values["leader_epoch"] = values.pop("end"), values.pop("epoch")
    values["first_lost_offset"] = values.pop("first_lost")
    return values
