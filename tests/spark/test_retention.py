"""Retention as a transform against the broker's loop, many logs in one DataFrame."""

from collections.abc import Iterator

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kafka_segments.decide.retention import LOG, decide_retention

NOW_MS = 10_000
COLUMNS = (
    "cluster string, broker_id int, log_dir string, topic string, partition int,"
    " base_offset long, size_bytes long, next_offset long, largest_timestamp_ms long,"
    " is_active boolean, high_watermark long, log_start_offset long"
)
Segment = tuple[int, int, int, int]  # base offset, next offset, size, largest timestamp
Log = tuple[list[Segment], int | None, int | None]


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Draw a log: its segments, high watermark and log start offset."""
    segments = []
    base_offset = draw(st.integers(0, 5))
    for _ in range(draw(st.integers(1, 6))):
        records = draw(st.integers(1, 4))
        size = draw(st.sampled_from([50, 100, 100, 300]))
        timestamp = draw(st.sampled_from([0, 8_999, 9_000, 9_001, 9_999, 20_000]))
        segments.append((base_offset, base_offset + records, size, timestamp))
        base_offset += records
    if draw(st.booleans()):
        last = segments[-1]
        segments[-1] = (last[0], last[0], 0, last[3])
    offsets = st.one_of(st.none(), st.integers(0, base_offset + 1))
    return segments, draw(offsets), draw(offsets)


def _deleted(log: Log, *, retention_ms: int, retention_bytes: int) -> set[int]:
    """Do what UnifiedLog does: three passes, each oldest first, each stops at a survivor."""
    segments, high_watermark, log_start = log
    end = segments[-1][1]
    alive = list(segments)

    def one_pass(breached: Iterator[bool]) -> None:
        for (base, _, size, _), is_breached in zip(list(alive), breached, strict=True):
            following = next((other[0] for other in segments if other[0] > base), None)
            upper = end if following is None else following
            committed = high_watermark is None or high_watermark >= upper
            if not (committed and is_breached and not (following is None and size == 0)):
                return
            alive.pop(0)

    def by_start() -> Iterator[bool]:
        for index in range(len(alive)):
            following = segments[index + 1][0] if index + 1 < len(segments) else None
            yield following is not None and log_start is not None and following <= log_start

    def by_size(excess: int, applies: bool) -> Iterator[bool]:
        for segment in list(alive):
            breached = applies and excess - segment[2] >= 0
            if breached:
                excess -= segment[2]
            yield breached

    def by_time() -> Iterator[bool]:
        for segment in list(alive):
            yield retention_ms >= 0 and NOW_MS - segment[3] > retention_ms

    one_pass(by_start())
    total = sum(segment[2] for segment in alive)
    one_pass(by_size(total - retention_bytes, 0 <= retention_bytes <= total))
    one_pass(by_time())
    return {segment[0] for segment in segments} - {segment[0] for segment in alive}


@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    many=st.lists(logs(), min_size=150, max_size=150),
    retention_ms=st.sampled_from([-1, 0, 1_000]),
    retention_bytes=st.sampled_from([-1, 0, 150, 250, 400]),
)
def test_retention_deletes_what_the_brokers_loop_deletes(
    spark: SparkSession, many: list[Log], retention_ms: int, retention_bytes: int
) -> None:
    rows = [
        ("c", 1, "/d", "t", number, base, size, following, time, base == log[0][-1][0], *log[1:])
        for number, log in enumerate(many)
        for base, following, size, time in log[0]
    ]
    expected = {
        (number, base)
        for number, log in enumerate(many)
        for base in _deleted(log, retention_ms=retention_ms, retention_bytes=retention_bytes)
    }

    decide = decide_retention(
        now_ms=NOW_MS,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        cleanup_policy="delete",
    )
    decided = spark.createDataFrame(rows, COLUMNS).transform(decide)

    found = decided.where("decision = 'delete'").select("partition", "base_offset").collect()
    assert {tuple(row) for row in found} == expected


def test_a_segment_behind_one_that_stays_names_it(spark: SparkSession) -> None:
    key = ("c", 1, "/d", "t", 0)
    rows = [
        (*key, 0, 100, 10, 20_000, False, None, None),
        (*key, 10, 100, 20, 0, True, None, None),
    ]

    decide = decide_retention(
        now_ms=NOW_MS, retention_ms=1_000, retention_bytes=-1, cleanup_policy="delete"
    )
    decided = spark.createDataFrame(rows, COLUMNS).transform(decide).orderBy("base_offset")

    last = decided.collect()[1]
    assert len(LOG) == len(key)
    assert (last["decision"], last["blocked_by_base_offset"]) == ("keep", 0)
    assert last["reason"] == "expired, but the older segment 0 stays"
