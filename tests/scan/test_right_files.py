"""Which index files a build in place leaves alone, and by whose settings it makes the others."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.derived.topic_configs import TopicConfigs
from kafka_segments.engine.derived.topic_sizes import TopicSizes, unknown_topics
from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.errors import UsageError
from kafka_segments.files.segments.format_files import Files
from kafka_segments.kafka.index.segment.offset_index import encode_offset_index
from kafka_segments.kafka.index.segment.recovery import SegmentRecoverer
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.index.segment.time_index import encode_time_index
from kafka_segments.kafka.text.names import file_name
from kafka_segments.settings import Settings, TopicConfig
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.right_files import BESIDE, RightFiles
from kafka_segments.verbs.scan.run import run_build

NOW_MS = 1_800_000_000_000
INDEX, TIME = ".index", ".timeindex"
SPARSE, MOST = 65_536, 240


def _made(log: Path, interval: int, most: int = 10 * 1024 * 1024) -> Files:
    found = SegmentRecoverer(RecoveryOptions(interval, most)).recover(
        _reader(log), size_bytes=log.stat().st_size, base_offset=_base(log)
    )
    assert found.offset_entries is not None
    assert found.time_entries is not None
    return {
        INDEX: encode_offset_index(found.offset_entries, base_offset=_base(log)),
        TIME: encode_time_index(found.time_entries, base_offset=_base(log)),
    }


def _base(log: Path) -> int:
    return int(log.stem)


def _reader(log: Path):  # type: ignore[no-untyped-def]
    data = log.read_bytes()

    def read_into(position: int, view: memoryview) -> int:
        part = data[position : position + len(view)]
        view[: len(part)] = part
        return len(part)

    return read_into


def _left(log: Path, beside: Files, interval: int = 4096, most: int = 10 * 1024 * 1024) -> set[str]:
    settings = RecoveryOptions(interval, most)
    recovery = SegmentRecoverer(settings).recover(
        _reader(log), size_bytes=log.stat().st_size, base_offset=_base(log)
    )
    left = RightFiles().left_out(
        _made(log, interval, most),
        dict.fromkeys(BESIDE) | beside,
        recovery,
        _reader(log),
        base_offset=_base(log),
        settings=settings,
    )
    return set(left)


@pytest.fixture
def log(log_dir: Path) -> Path:
    logs = (log_dir / "ct-two-partitions-0").glob("*.log")
    return max(logs, key=lambda file: file.stat().st_size)


def test_a_file_of_another_interval_is_right(log: Path) -> None:
    sparse = _made(log, SPARSE)

    assert sparse != _made(log, 4096)
    assert _left(log, sparse) == set()


def test_a_file_that_is_wrong_missing_or_cut_is_made_anew(log: Path) -> None:
    sparse = _made(log, SPARSE)
    index = sparse[INDEX] or b""

    assert _left(log, {}) == {INDEX, TIME}
    assert _left(log, sparse | {INDEX: b"\0" * 80}) == {INDEX}
    assert _left(log, sparse | {INDEX: index[:-3]}) == {INDEX}
    assert _left(log, sparse | {INDEX: index[:-1] + bytes([index[-1] ^ 1])}) == {INDEX}


def test_a_right_file_that_is_longer_than_its_topic_allows_is_made_anew(log: Path) -> None:
    dense = _made(log, 4096)
    length = len(dense[INDEX] or b"")

    assert _left(log, dense, SPARSE, most=length) == set()
    assert _left(log, dense, SPARSE, most=length - 1) == {INDEX}


def _in_place(log_dir: Path, **topics: TopicConfig) -> BuildOptions:
    configs = TopicConfigs.load(Settings(topics=topics))
    return BuildOptions(
        (str(log_dir),),
        RecoveryOptions(),
        NOW_MS,
        in_place=True,
        sizes=TopicSizes(configs),
    )


@pytest.mark.usefixtures("few")
def test_in_place_a_topics_own_settings_count_and_right_files_stay(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    own = TopicConfig(index_interval_bytes=SPARSE, segment_index_bytes=MOST)
    logs = sorted(log_dir.glob("ct-two-partitions-*/*.log"))
    gone, kept = logs[0], logs[1:]
    for log in logs:
        for suffix, data in _made(log, SPARSE, MOST).items():
            log.with_suffix(suffix).write_bytes(data or b"")
    before = {log: log.with_suffix(INDEX).stat().st_mtime_ns for log in kept}
    gone.with_suffix(INDEX).unlink()

    run_build(
        Warehouse(spark, str(tmp_path / "wh")), _in_place(log_dir, **{"ct-two-partitions": own})
    )

    for log in logs:
        assert log.with_suffix(INDEX).read_bytes() == _made(log, SPARSE, MOST)[INDEX]
    assert {log: log.with_suffix(INDEX).stat().st_mtime_ns for log in kept} == before
    assert not list((tmp_path / "wh").rglob("_set_aside/**/*.index"))


@pytest.mark.usefixtures("few")
def test_in_place_topics_of_unknown_settings_are_refused_before_anything_is_written(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    index = log_dir / "ct-two-partitions-0" / file_name(0, INDEX)
    index.unlink(missing_ok=True)

    with pytest.raises(UsageError, match=r"of ct-two-partitions are not known.*--topic-configs"):
        run_build(Warehouse(spark, str(tmp_path / "wh")), _in_place(log_dir, other=TopicConfig()))

    assert not index.exists()


def test_both_settings_given_for_all_topics_tell_of_each() -> None:
    both = TopicConfigs.load(Settings(index_interval_bytes=1, segment_index_bytes=1024))
    one = TopicConfigs.load(Settings(index_interval_bytes=1))

    assert unknown_topics(both, [("c", "t")]) == []
    assert unknown_topics(one, [("c", "t")]) == [("c", "t")]
    assert (
        unknown_topics(TopicConfigs.load(Settings(topics={"t": TopicConfig()})), [("c", "t")]) == []
    )
