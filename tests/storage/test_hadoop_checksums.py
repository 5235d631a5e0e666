"""Checksums that Hadoop keeps beside files, held against those that Hadoop itself writes."""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.files.storage.hadoop_checksums import (
    checksums_beside,
    has_other_checksums,
    write_checksums,
)

SIZES = (0, 1, 511, 512, 513, 5_000_001)


@pytest.mark.parametrize("size", SIZES)
def test_checksums_are_those_that_hadoop_writes(
    spark: SparkSession, tmp_path: Path, size: int
) -> None:
    ours, data = tmp_path / "ours", random.Random(size).randbytes(size)
    ours.write_bytes(data)
    jvm = spark._jvm
    assert jvm is not None
    hadoop = jvm.org.apache.hadoop.fs
    disk = hadoop.FileSystem.getLocal(jvm.org.apache.hadoop.conf.Configuration())
    disk.copyFromLocalFile(hadoop.Path(f"file:{ours}"), hadoop.Path(f"file:{tmp_path}/of-hadoop"))
    written = checksums_beside(tmp_path / "of-hadoop").read_bytes()

    write_checksums(ours, data)

    assert checksums_beside(ours).read_bytes() == written
    assert not has_other_checksums(ours)


def test_each_flipped_bit_of_the_end_is_found(tmp_path: Path) -> None:
    file, draw = tmp_path / "rows.parquet", random.Random(7)
    data = draw.randbytes(5_000_001)
    write_checksums(file, data)

    for _ in range(20):
        place = draw.randrange(len(data) - 4 * 1024 * 1024, len(data))
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert has_other_checksums(file)


@pytest.mark.parametrize("beside", [None, b"", b"crc\0", bytes(16), b"crc\0\0\0\0\0" + bytes(8)])
def test_what_are_no_checksums_of_a_file_tells_nothing(
    tmp_path: Path, beside: bytes | None
) -> None:
    file = tmp_path / "rows.parquet"
    file.write_bytes(b"rows")
    if beside is not None:
        checksums_beside(file).write_bytes(beside)

    assert not has_other_checksums(file)
