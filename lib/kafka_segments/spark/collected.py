"""Several small frames collected by one query, which costs less than a query each."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F


def collect_together(frames: Mapping[str, DataFrame]) -> dict[str, list[Row]]:
    """Collect several frames by one query; return the rows of each by its name, in its order.

    Spark plans and schedules the query once, however many frames there are. All rows are held in
    memory, so each frame ends in an aggregate or a limit.
    """
    kinds = {name: frame.schema for name, frame in frames.items()}
    together: DataFrame | None = None
    for name, frame in frames.items():
        columns = [
            F.struct("*") if other == name else F.lit(None).cast(kind)
            for other, kind in kinds.items()
        ]
        of_frame = frame.select(F.lit(name), *columns)
        together = of_frame if together is None else together.union(of_frame)
    found: dict[str, list[Row]] = {name: [] for name in frames}
    place = {name: number for number, name in enumerate(frames, start=1)}
    for row in together.collect() if together is not None else ():
        found[row[0]].append(row[place[row[0]]])
    return found
