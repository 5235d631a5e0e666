"""Large trees are listed by the executors, with the same rows as small ones by the driver."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.sources import list as listing


@pytest.mark.slow
def test_what_the_executors_list_is_what_the_driver_lists(
    spark: SparkSession, broker: Path, caches: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = str(broker / "logs")
    by_driver, loads = listing.list_sources(spark, [source], caches)
    monkeypatch.setattr(listing, "LISTED_IN_DRIVER", 0)

    by_executors, loads_there = listing.list_sources(spark, [source], caches)

    rows = [
        sorted(
            (row.asDict(recursive=True) for row in found.collect() if row["kind"] != "folder"),
            key=str,
        )
        for found in (by_driver, by_executors)
    ]
    assert rows[0] == rows[1]
    assert loads_there["segment"] == loads["segment"]
    assert loads["segment"].segments > 10
