"""Several small frames collected by one query, which costs less than a query each."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.engine.frames.local_rows import schema_if_cheap


def collect_together(frames: Mapping[str, DataFrame]) -> dict[str, list[Row]]:
    """Collect several frames by one query; return the rows of each by its name, in its order.

    Spark plans and schedules the query once, however many frames there are. All rows are held in
    memory, so each frame ends in an aggregate or a limit.
    """
    together: DataFrame | None = None
    nothing = {name: _nothing_of(frame) for name, frame in frames.items()}
    for name, frame in frames.items():
        columns = [F.struct("*") if other == name else null for other, null in nothing.items()]
        of_frame = frame.select(F.lit(name), *columns)
        together = of_frame if together is None else together.union(of_frame)
    found: dict[str, list[Row]] = {name: [] for name in frames}
    place = {name: number for number, name in enumerate(frames, start=1)}
    for row in together.collect() if together is not None else ():
        found[row[0]].append(row[place[row[0]]])
    return found


def _nothing_of(frame: DataFrame) -> Column:
    """Return null in the place of a frame's rows.

    Here it has the rows' type, or the union would be planned anew with each frame. A client of
    Spark Connect would have to ask the server for that type, which plans the union as a whole, and
    takes the type of what is not null.
    """
    schema = schema_if_cheap(frame)
    return F.lit(None) if schema is None else F.lit(None).cast(schema)
