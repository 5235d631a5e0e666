"""A build by first looks: what it takes, what its rows claim, and how it goes with other builds."""

import os
import shutil
from contextlib import closing
from pathlib import Path
from threading import Event, Lock
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from kafka_segments.engine.frames.local_rows import local_rows
from kafka_segments.engine.tables.catalog import OFFSET_INDEX, SEGMENTS
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.kafka.index.segment.offset_index import encode_offset_index
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.time_index import encode_time_index
from kafka_segments.verbs.scan.first_looks import LooksAtOnce
from kafka_segments.verbs.scan.scanner import ScanOptions, SegmentScanner
from kafka_segments.verbs.scan.tasks import CARRIED, scan_segments
from support.logs.log_reading import recovered
from support.logs.looks_compared import assert_not_denied, scan
from support.logs.strategies import v2_batch
from support.spark.stored_builds import build_few
from support.stores.object_store import ObjectStore, Request
from support.stores.tiered_objects import put_log

KEY = ("topic", "partition", "base_offset")
CARRIED_TYPES = {
    "broker_id": "int",
    "partition": "int",
    "base_offset": "bigint",
    "size_bytes": "bigint",
    "mtime_ns": "bigint",
    "is_active": "boolean",
    "next_base_offset": "bigint",
}


@pytest.fixture
def logs(broker: Path, tmp_path: Path) -> Path:
    """Three partitions of a broker, with the index files that it rebuilt beside the segments."""
    folder = tmp_path / "logs"
    for name in ("ct-none-0", "ct-out-of-order-0", "txn-0"):
        for part in ("logs", "rebuilt"):
            shutil.copytree(broker / part / name, folder / name, dirs_exist_ok=True)
    return folder


def _rows(spark: SparkSession, warehouse: Path) -> dict[tuple[Any, ...], Row]:
    rows = Warehouse(spark, str(warehouse)).read(SEGMENTS).collect()
    return {tuple(row[name] for name in KEY): row for row in rows}


class Turns:
    """Builds of one partition in turn, by first looks and in full."""

    def __init__(self, spark: SparkSession, broker: Path, root: Path) -> None:
        self._spark = spark
        self.warehouse = root / "warehouse"
        self.log = root / "logs" / "ct-none-0"
        for part in ("logs", "rebuilt"):
            shutil.copytree(broker / part / "ct-none-0", self.log, dirs_exist_ok=True)
        self.count = len(list(self.log.glob("*.log")))

    def build(self, **options: Any) -> int:
        """Build, and return how many segments were read."""
        source = str(self.log.parent)
        return build_few(self._spark, source, str(self.warehouse), **options).segments_scanned

    def rows(self) -> dict[tuple[Any, ...], Row]:
        return _rows(self._spark, self.warehouse)


@pytest.fixture(scope="module")
def looked(spark: SparkSession, broker: Path, tmp_path_factory: pytest.TempPathFactory) -> Turns:
    turns = Turns(spark, broker, tmp_path_factory.mktemp("turns"))
    assert turns.build(is_first_look=True) == turns.count
    return turns


def test_a_second_first_look_reads_nothing(looked: Turns) -> None:
    assert looked.build(is_first_look=True) == 0


@pytest.fixture(scope="module")
def read(looked: Turns) -> Turns:
    """What looks know does not count as known to a full build."""
    assert looked.build() == looked.count
    return looked


@pytest.mark.usefixtures("few")
def test_a_full_build_reads_what_first_looks_know(read: Turns) -> None:
    assert {row["checked"] for row in read.rows().values()} == {"full"}


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_first_look_leaves_rows_of_whole_segments_while_their_file_stays(
    spark: SparkSession, read: Turns
) -> None:
    os.utime(read.log / f"{0:020d}.log", (1_700_000_000, 1_700_000_000))

    assert read.build(is_first_look=True, full=True) == 1

    known = {key for key, row in read.rows().items() if row["checked"] == "index"}
    assert known == {("ct-none", 0, 0)}
    entries = Warehouse(spark, str(read.warehouse)).read(OFFSET_INDEX)
    assert entries.where("base_offset = 0").count() == 0


def test_segments_in_tiered_storage_are_known_by_their_object_of_indexes(
    broker: Path, tmp_path: Path
) -> None:
    logs = put_log(tmp_path / "tier", broker, "ct-out-of-order-0")

    looked = [assert_not_denied(log) for log in logs]

    assert [one.checked for one in looked] == ["index"] * len(logs)
    assert all(one.size_bytes for one in looked)


@pytest.mark.parametrize(
    ("epochs", "known"),
    [
        ({0: 0}, [[0, 0]]),
        ({0: 0, 1: 7}, None),  # the last batches have another
        ({1: 0}, None),
        ({0: 1}, None),
    ],
)
def test_leader_epochs_are_those_of_the_manifest_where_the_log_shows_them(
    broker: Path, tmp_path: Path, epochs: dict[int, int], known: object
) -> None:
    log = put_log(tmp_path / "tier", broker, "ct-none-0", epochs=epochs)[0]

    look = assert_not_denied(log).look

    assert look is not None
    assert (None if look.leader_epochs is None else look.leader_epochs.tolist()) == known


@pytest.mark.parametrize("is_told", [True, False])
def test_what_a_manifest_announces_must_fit(broker: Path, tmp_path: Path, is_told: bool) -> None:
    options = {} if is_told else {"max_timestamp_ms": 5}
    log = put_log(tmp_path / "tier", broker, "ct-none-0", **options)[0]

    looked = assert_not_denied(log)

    assert (looked.checked, looked.doubt is None) == (
        ("index", True) if is_told else ("full", False)
    )


def test_index_files_that_are_links_or_pipes_are_not_opened(logs: Path) -> None:
    log = logs / "ct-none-0" / f"{0:020d}.log"
    for make in (os.mkfifo, lambda path: path.symlink_to(logs / "elsewhere"), Path.mkdir):
        index = log.with_suffix(".index")
        index.unlink() if index.is_file() or index.is_fifo() or index.is_symlink() else None
        make(index)

        looked = assert_not_denied(log)

        assert looked.doubt is not None
        assert looked.doubt.startswith(index.name)


def test_of_an_object_few_ranges_are_fetched(object_store: ObjectStore, tmp_path: Path) -> None:
    """Of a segment of 4 MB, which is little: what is fetched does not grow with the segment."""
    batch = v2_batch(0, [(1_000, None, bytes(15_000))])
    log = b"".join(n.to_bytes(8, "big") + batch[8:] for n in range(280))
    found = recovered(log, base_offset=0)
    assert found.offset_entries is not None
    assert found.time_entries is not None
    object_store.files.create_dir("looks")
    for suffix, data in {
        ".log": log,
        ".index": encode_offset_index(found.offset_entries, base_offset=0),
        ".timeindex": encode_time_index(found.time_entries, base_offset=0),
    }.items():
        object_store.put(f"looks/t-0/{0:020d}{suffix}", data)
    object_store.requests.clear()

    options = ScanOptions(RecoveryOptions(), None, is_first_look=True)
    looked = SegmentScanner(options).begin("s3://looks", "t-0", f"{0:020d}.log", 0)()

    assert (looked.checked, looked.doubt) == ("index", None)
    asked = [(one.method, one.ranged, one.path.rpartition(".")[2]) for one in object_store.requests]
    of_indexes = [(method, ranged, suffix) for method, ranged, suffix in asked if suffix != "log"]
    assert of_indexes == [
        ("GET", "bytes=-4080", suffix) for suffix in ("index", "timeindex", "txnindex")
    ]
    of_log = [ranged for method, ranged, suffix in asked if (method, suffix) == ("GET", "log")]
    spans = [ranged.removeprefix("bytes=").split("-") for ranged in of_log if ranged]
    assert len(of_log) == len(spans) <= 4
    assert sum(int(end) - int(start) + 1 for start, end in spans) < 90 * 1024


def test_a_log_that_is_gone_or_cannot_be_read_is_a_row(logs: Path) -> None:
    gone = logs / "ct-none-0" / f"{99:020d}.log"

    looked = scan(gone, is_first_look=True)

    assert looked.damage is not None
    assert looked.damage.kind == "vanished_while_read"


def test_many_objects_are_looked_at_at_once(object_store: ObjectStore, broker: Path) -> None:
    logs = sorted((broker / "logs" / "ct-none-0").glob("*.log"))
    for part in ("logs", "rebuilt"):
        object_store.put_folder(broker / part / "ct-none-0", "at-once/ct-none-0")
    missing = {"name": f"{7:020d}.log", "base_offset": 7}
    rows = [
        {"source": "s3://at-once", "relative_path": "ct-none-0", "is_active": False, **one}
        for one in (*({"name": log.name, "base_offset": int(log.stem)} for log in logs), missing)
    ]

    with closing(LooksAtOnce(RecoveryOptions())) as looks:
        *looked, gone, local = looks.begin([*rows, {**rows[0], "source": str(broker)}])

    assert local is None  # there is nothing to wait for
    assert gone is None  # the scan of it says what is wrong
    for log, taken in zip(logs, looked, strict=True):
        read = scan(log, is_first_look=False).recovery
        assert taken is not None and taken.found is not None and read is not None
        assert taken.found.max_timestamp == read.max_timestamp
        assert taken.found.next_offset == read.next_offset


class ManyAtOnce:
    """Lets requests of a store wait until enough of them are under way."""

    def __init__(self, enough: int) -> None:
        self.has_come = False
        self._enough = enough
        self._waiting = 0
        self._lock = Lock()
        self._goes_on = Event()

    def refuses(self, _: Request) -> bool:
        """Wait, and refuse nothing; where too few come, one wait is enough."""
        with self._lock:
            self._waiting += 1
            if self._waiting == self._enough:
                self.has_come = True
                self._goes_on.set()
        self._goes_on.wait(timeout=2)
        self._goes_on.set()
        with self._lock:
            self._waiting -= 1
        return False


@pytest.mark.slow
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("threads", [1, 2])
def test_the_driver_looks_at_many_objects_at_once_and_tells_of_them(
    spark: SparkSession,
    object_store: ObjectStore,
    broker: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
) -> None:
    """As ``build`` does with few segments: by threads of the driver, and told of each."""
    source, logs = f"driver-{threads}", sorted((broker / "logs" / "ct-none-0").glob("*.log"))
    for part in ("logs", "rebuilt"):
        object_store.put_folder(broker / part / "ct-none-0", f"{source}/ct-none-0")
    columns = StructType.fromDDL(
        ", ".join(f"{name} {CARRIED_TYPES.get(name, 'string')}" for name in CARRIED)
    )
    rows: list[dict[str, Any]] = [
        {
            "source": f"s3://{source}",
            "relative_path": "ct-none-0",
            "name": log.name,
            "base_offset": int(log.stem),
            "size_bytes": log.stat().st_size,
            "mtime_ns": 0,
            "is_active": False,
        }
        for log in logs * 8
    ]
    given = local_rows(spark, ([row.get(name) for name in CARRIED] for row in rows), columns)
    waiting = ManyAtOnce(enough=8)
    told: list[int] = []
    monkeypatch.setattr(object_store, "refuses", waiting.refuses)

    options = ScanOptions(RecoveryOptions(), None, is_first_look=True)
    scan_all = scan_segments(options, threads_here=threads, tell_read=told.append)
    scanned = given.transform(scan_all).collect()

    assert waiting.has_come
    assert [row["checked"] for row in scanned] == ["index"] * len(rows)
    assert sum(told) == len(rows)
