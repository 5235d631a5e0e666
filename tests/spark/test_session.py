"""The session that commands take: the one that this process has."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from kafka_segments.console import early
from kafka_segments.engine.spark.session import spark_session
from kafka_segments.files.delta.append import write_parquet


def test_a_thread_that_is_new_to_spark_takes_the_running_session_and_leaves_it_running(
    spark: SparkSession, tmp_path: Path
) -> None:
    def ask() -> SparkSession:
        assert SparkSession.getActiveSession() is None
        assert early._has_session()  # so no Java is looked for
        with spark_session("another", root=tmp_path) as found:
            return found

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(ask).result()

    assert found is spark
    assert spark.range(3).count() == 3


@pytest.mark.parametrize("writer", ["Spark", "Arrow"])
def test_a_bit_that_is_flipped_in_a_page_fails_the_query(
    spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    folder = tmp_path / "rows"
    if writer == "Spark":
        spark.range(3, numPartitions=1).write.parquet(str(folder), compression="snappy")
    else:
        folder.mkdir()
        rows = pa.table({"id": pa.array([0, 1, 2], pa.int64())})
        write_parquet(str(folder / "rows.parquet"), rows)
    (file,) = folder.glob("*.parquet")
    for checksum in folder.glob(".*.crc"):
        checksum.unlink()  # Hadoop's own, which a store has not
    column = parquet.read_metadata(file).row_group(0).column(0)
    end = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size
    data = bytearray(file.read_bytes())
    data[end - 1] ^= 4
    file.write_bytes(data)

    with pytest.raises(Exception, match=r"[Cc][Rr][Cc]|checksum"):
        spark.read.parquet(str(folder)).collect()
