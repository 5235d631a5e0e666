"""The wheel, installed in an environment outside the checkout, does what the checkout does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.house.installed_package import PYTHONS, InstalledPackage, build_wheel
from support.spark.stored_builds import files

pytestmark = [pytest.mark.slow, pytest.mark.spark]
NOTEBOOK = """
import json, sys
import kafka_segments

with kafka_segments.open(sys.argv[1]) as warehouse:
    kafka_segments.register(warehouse.spark)
    batches = warehouse.spark.read.format("kafka_segments").load(sys.argv[2])
    asked = warehouse.search("LATEST", topics="txn")
    print(json.dumps([warehouse.segments.count(), batches.count(), asked.first()["true_offset"]]))
"""

TYPED = """
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_type

import kafka_segments
from pyspark.sql import DataFrame, SparkSession


def ask(spark: SparkSession) -> list[DataFrame]:
    kafka_segments.register(spark)
    with kafka_segments.open(Path("/srv/warehouse"), spark) as warehouse:
        assert_type(warehouse, kafka_segments.OpenWarehouse)
        assert_type(warehouse.segments, DataFrame)
        assert_type(warehouse.tables, list[str])
        now = datetime(2026, 11, 18, tzinfo=UTC)
        warehouse.search("LATEST", high_watermark="beginning")  # type: ignore[arg-type]
        warehouse.retention(moment=now)  # type: ignore[call-arg]
        warehouse.no_such  # type: ignore[attr-defined]
        return [
            warehouse.retention(now=now, settings={"retention.ms": 1, "segment_ms": "2"}),
            warehouse.retention(conf=Path("retention.toml"), save=False),
            warehouse.retention_what_if({"retention_ms": [1, 2]}, now=0),
            warehouse.explain("orders-0", now="2026-11-18T00:00:00Z"),
            warehouse.roll(append_timestamp=-1, opened="-2h"),
            warehouse.search("LATEST", now, topics="orders", partitions=[0, 1]),
            warehouse.lag(at=now, groups=["g"]),
            warehouse.share_lag(),
            warehouse.sql("SELECT 1"),
            warehouse.internals.transactions(now=now),
            warehouse.internals.state(offset=7),
        ]


def refused(error: kafka_segments.UsageError) -> kafka_segments.KafkaSegmentsError:
    return error
"""


@pytest.fixture(scope="module", params=PYTHONS)
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> InstalledPackage:
    folder = tmp_path_factory.mktemp("installed")
    return InstalledPackage(build_wheel(folder), request.param, folder)


@pytest.fixture(scope="module")
def built(installed: InstalledPackage, broker: Path) -> Path:
    """What the installed command built of a broker's logs: index files and tables."""
    folder = installed.elsewhere / "built"
    done = installed.run(
        *("kafka-segments", "build", "--source", broker / "logs"),
        *("--index-dir", folder / "indexes", "--warehouse", folder / "warehouse"),
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_it_is_the_wheels_own_package_that_runs(installed: InstalledPackage) -> None:
    done = installed.run("python", "-c", "import kafka_segments; print(kafka_segments.__file__)")

    assert Path(done.stdout.strip()) == installed.packages / "kafka_segments" / "__init__.py"


def test_its_index_files_are_byte_for_byte_a_brokers(built: Path, broker: Path) -> None:
    expected = {
        name: data
        for name, data in files(broker / "rebuilt").items()
        if name.endswith((".index", ".timeindex", ".txnindex"))
    }

    assert len(expected) == 51
    assert files(built / "indexes") == expected


@pytest.mark.long
def test_its_tables_answer_a_query(installed: InstalledPackage, built: Path) -> None:
    query = "SELECT topic, count(*) AS n FROM segments WHERE topic = 'txn' GROUP BY topic"

    done = installed.run(
        *("kafka-segments", "sql", query, "--warehouse", built / "warehouse", "--output", "json")
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"topic": "txn", "n": 6}


@pytest.mark.long
def test_a_notebook_opens_them_and_reads_batches_in_workers(
    installed: InstalledPackage, built: Path, broker: Path
) -> None:
    done = installed.run("python", "-c", NOTEBOOK, built / "warehouse", broker / "logs")

    assert done.returncode == 0, done.stderr
    segments, batches, latest = json.loads(done.stdout.splitlines()[-1])
    assert (segments, latest) == (24, 2632)
    assert batches > 1000


@pytest.mark.long
def test_a_consumers_code_is_checked_by_the_types_of_the_package(
    installed: InstalledPackage, tmp_path: Path
) -> None:
    """Where the package were taken for untyped, what ignores an error would be a finding."""
    (tmp_path / "consumer.py").write_text(TYPED, "utf-8")
    checking = ["--strict", "--config-file=", "--cache-dir", tmp_path / "cache"]
    by = ["--python-executable", installed.bin / "python"]

    done = subprocess.run(
        [sys.executable, "-m", "mypy", *checking, *by, "consumer.py"],
        cwd=tmp_path,
        env={
            key: text for key, text in os.environ.items() if key not in ("MYPYPATH", "PYTHONPATH")
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout + done.stderr
