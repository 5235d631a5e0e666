"""Decide whether a remote segment lies in its partition's lineage of leader epochs."""

from pyspark.sql import Column
from pyspark.sql import functions as F


def epochs_with_records(epochs: str) -> Column:
    """Return leader epochs in order, without those in which no record was written.

    Source: RemoteLogManager.buildFilteredLeaderEpochMap.
    """
    ordered = F.array_sort(F.col(epochs))
    return F.filter(
        ordered,
        lambda entry, place: (
            ~F.coalesce(
                F.get(ordered, place + 1)["start_offset"] == entry["start_offset"], F.lit(False)
            )
        ),
    )


def is_within_lineage() -> Column:
    """Tell whether a broker takes a remote segment for one of its leader's log.

    1. Its last epoch lies between the first and the last of the lineage.
    2. Its epochs before the lineage's first are passed over: retention cut the lineage there.
    3. Of the rest the first is in the lineage, and does not begin before it does there, unless it
       is the lineage's first. The others follow in the lineage one by one, with equal offsets.
    4. It ends before the next epoch of the lineage begins, and before the log's end.

    Needs: leader_epochs, end_offset (of the segment), lineage (array of epoch, start_offset),
        log_end_offset.
    Source: RemoteLogManager.isRemoteSegmentWithinLeaderEpochs.
    """
    lineage = F.array_sort("lineage")
    held = epochs_with_records("leader_epochs")
    first_epoch = F.get(lineage, F.lit(0))["epoch"]
    last_epoch = F.get(lineage, F.size(lineage) - 1)["epoch"]
    kept = F.filter(held, lambda entry: entry["epoch"] >= first_epoch)
    first, last = F.get(kept, F.lit(0)), F.get(kept, F.size(kept) - 1)
    # 0-based; array_position gives 0 where there is none.
    place = F.array_position(F.transform(lineage, lambda entry: entry["epoch"]), first["epoch"]) - 1
    others = F.greatest(F.size(kept) - 1, F.lit(0))
    follow = F.slice(kept, F.lit(2), others) == F.slice(lineage, place + 2, others)
    begins = (place == 0) | (first["start_offset"] >= F.get(lineage, place)["start_offset"])
    after = F.get(lineage, place + F.size(kept))["start_offset"]
    is_within = (
        (F.size(kept) > 0)
        & (last["epoch"] <= last_epoch)
        & (place >= 0)
        & begins
        & (after.isNull() | (F.col("end_offset") < after))
        & (F.col("end_offset") < F.col("log_end_offset"))
    )
    is_known = (F.size("lineage") > 0) & (F.size(held) > 0)
    return F.when(is_known, F.when(is_within, follow).otherwise(F.lit(False)))
