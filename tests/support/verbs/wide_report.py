"""What a report shows at most: 10,000 partitions with each section filled, made without Spark."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from pyspark.sql import Row

from kafka_segments.verbs.tell.report.cluster import ClusterFacts
from kafka_segments.verbs.tell.report.copies import CopyFacts
from kafka_segments.verbs.tell.report.crash import crashes_of
from kafka_segments.verbs.tell.report.decide.overview import DAY_MS, KINDS
from kafka_segments.verbs.tell.report.run import ReportData, ReportLimits, RetentionForecast

NOW_MS = 1_795_000_000_000
PARTITIONS, SEGMENTS_A_PARTITION = 10_000, 60
_LIMITS = ReportLimits()
_TOPICS = (
    *("orders", "payments.authorized", "payments.settled.v2", "clickstream", "inventory", "emails"),
    *("user-profile-changes", "shipments", "audit.events", "search.queries", "billing", "sessions"),
    *("iot.device.telemetry.raw.eu-central-1.production.by-device-and-minute", "ledger.entries"),
    "recommendations",
)
_PARTITIONS_A_TOPIC = 40
_GIB = 1024**3


def _rows(values: Mapping[str, Any]) -> Row:
    return Row(**values)


def _name(lane: int) -> dict[str, Any]:
    number = lane // _PARTITIONS_A_TOPIC
    copy = number // len(_TOPICS)
    topic = _TOPICS[number % len(_TOPICS)] + (f"-{copy}" if copy else "")
    return {"topic": topic, "partition": lane % _PARTITIONS_A_TOPIC}


def _log(lane: int) -> dict[str, Any]:
    place = {"broker_id": lane % 6 + 1, "log_dir": f"/data/kafka-logs-{lane % 2}"}
    return {"cluster": "prod-eu", **place, **_name(lane)}


def wide_report() -> ReportData:
    """Give a report of 10,000 partitions with 600,000 segments, on six brokers."""
    random = Random(1)
    lanes, spans = [], []
    size_bytes = 0
    for lane in range(PARTITIONS):
        began = NOW_MS - round(DAY_MS * (5 + 35 * random.random()))
        largest = round(60 * _GIB * (1 - lane / 10_050) ** 3)
        drawn = SEGMENTS_A_PARTITION if lane < _LIMITS.detailed_lanes else 1
        odd = KINDS[1 + lane % 3] if lane % 53 == 0 else None
        width = (NOW_MS - began) // drawn
        spans += [
            _rows(
                {
                    "lane": lane,
                    "base_offset": part * 1_000_000,
                    "start_ms": began + part * width,
                    "end_ms": began + (part + 1) * width,
                    "segments": SEGMENTS_A_PARTITION // drawn,
                    "size_bytes": largest // drawn,
                    "kind": odd if odd is not None and part == drawn // 2 else KINDS[0],
                }
            )
            for part in range(drawn)
        ]
        size_bytes += largest
        counts = dict.fromkeys(KINDS[1:], 0)
        if odd is not None:
            counts[odd] = 1
        sums = {"segments": SEGMENTS_A_PARTITION, "size_bytes": largest, **counts}
        lanes.append(_rows({**_log(lane), **sums, "oldest_ms": began, "newest_ms": NOW_MS}))
    totals = {
        "logs": PARTITIONS,
        "segments": PARTITIONS * SEGMENTS_A_PARTITION,
        "size_bytes": size_bytes,
        "unverified": 1_234,
        **{name: sum(lane[name] for lane in lanes) for name in KINDS[1:]},
    }
    return ReportData(
        warehouse="s3://prod-eu/warehouse",
        now_ms=NOW_MS,
        last_run_ms=NOW_MS - 3_600_000,
        totals=_rows(totals),
        lanes=lanes,
        spans=spans,
        history_from_ms=NOW_MS - 40 * DAY_MS,
        history_width_ms=40 * DAY_MS // _LIMITS.history_bins,
        history_bytes=[
            size_bytes * (step + 1) // _LIMITS.history_bins for step in range(_LIMITS.history_bins)
        ],
        damage_kinds=_kinds(corrupt_batch=45, torn_tail=13, bad_length=5),
        damaged=[_damaged(lane) for lane in range(53, PARTITIONS, 3 * 53)],
        oddity_kinds=_kinds(**{"in the future": 63, "no timestamps: mtime": 63}),
        odd=[_odd(53 * row) for row in range(_LIMITS.rows)],
        offset_index_density=[_rows({"step": 48 + n, "segments": 9**n}) for n in range(6)],
        time_index_density=[_rows({"step": 50 + n, "segments": 9**n}) for n in range(6)],
        forecast=_forecast(size_bytes),
        cluster=_cluster(),
        copies=_copies(),
        crashes=crashes_of([_crash_dir(broker, disk) for broker in range(1, 7) for disk in (0, 1)]),
        dirs=[_dir(broker, disk, size_bytes) for broker in range(1, 7) for disk in (0, 1)],
        ages=_ages(lanes),
    )


def _ages(lanes: Sequence[Row]) -> dict[tuple[str, int | None], int]:
    """Share each topic's bytes out to the bands of age."""
    sizes: Counter[str] = Counter()
    for lane in lanes:
        sizes[lane["topic"]] += lane["size_bytes"]
    percents = {0: 1, 1: 6, 2: 31, 3: 44, 4: 17, None: 1}
    return {
        (topic, band): size_bytes * percent // 100
        for topic, size_bytes in sizes.most_common(_LIMITS.rows)
        for band, percent in percents.items()
    }


def _dir(broker: int, disk: int, size_bytes: int) -> Row:
    place = {"cluster": "prod-eu", "broker_id": broker, "log_dir": f"/data/kafka-logs-{disk}"}
    counts = {"logs": 834, "segments": 50_000, "size_bytes": size_bytes // 12}
    odd = {"damaged": 5 * disk, "unverified": 103, "in_future": 0, "by_mtime": 0}
    return _rows({**place, **counts, **odd})


def _kinds(**segments: int) -> list[Row]:
    return [
        _rows({"kind": kind, "segments": count, "size_bytes": count * _GIB})
        for kind, count in segments.items()
    ]


def _damaged(lane: int) -> Row:
    found = "the checksum of the batch is 3735928559, its bytes give 3405691582"
    damage = {"kind": "corrupt_batch", "position": 104_857_600, "message": found}
    return _rows({**_log(lane), "base_offset": 30_000_000, **damage})


def _odd(lane: int) -> Row:
    oddities = ["in the future", "before the segment that precedes it"]
    moment = {"largest_timestamp_ms": NOW_MS + 400 * DAY_MS, "oddities": oddities}
    return _rows({**_log(lane), "base_offset": 30_000_000, "size_bytes": _GIB, **moment})


def _forecast(size_bytes: int) -> RetentionForecast:
    blocked = [
        _rows(
            {
                **_log(17 * row),
                "blocked_by_base_offset": 29_000_000,
                "segments": 31,
                "size_bytes": (_LIMITS.rows - row) * _GIB,
            }
        )
        for row in range(_LIMITS.rows)
    ]
    freed = [size_bytes // 120] * (_LIMITS.forecast_days + 1)
    inflow = [(7 * DAY_MS, size_bytes / 40)]
    by_dir = [
        _rows(
            {
                **{"cluster": "prod-eu", "broker_id": broker, "log_dir": "/data/kafka-logs-0"},
                **{"decided": 49_000, "not_known": 7, "freed_bytes": 40 * _GIB},
            }
        )
        for broker in range(1, 7)
    ]
    return RetentionForecast(NOW_MS, freed, inflow, blocked, 3_100, 5_050 * _GIB, by_dir)


def _cluster() -> ClusterFacts:
    ill = [
        _rows(
            {
                "cluster": "prod-eu",
                **_name(211 * row % PARTITIONS),
                "is_offline": row < 5,
                "leader": row % 6 + 1,
                "isr": [row % 6 + 1],
                "replicas": [row % 6 + 1, (row + 1) % 6 + 1, (row + 2) % 6 + 1],
                "min_isr": 2,
                "from_ms": NOW_MS - 7_200_000,
            }
        )
        for row in range(_LIMITS.rows)
    ]
    changes = [
        _rows(
            {
                "cluster": "prod-eu",
                "ms": NOW_MS - 60_000 * row,
                "kind": "leader",
                "name": "{topic}-{partition}".format(**_name(300 * row % PARTITIONS)),
                "before": "1",
                "after": "2",
                "of": 4_321,
            }
        )
        for row in range(_LIMITS.rows)
    ]
    totals = {
        **{"partitions": PARTITIONS, "offline": 5, "under_min_isr": 48, "under_replicated": 318},
        **{"with_offline_replica": 1_666, "last_ms": NOW_MS - 60_000},
    }
    leaders = [
        _rows({"cluster": "prod-eu", "node_id": broker, "is_fenced": broker == 4, **leads})
        for broker, leads in (
            (broker, {"leads": 1_666, "preferred": 1_650, "replicas": 5_000})
            for broker in range(1, 7)
        )
    ]
    transaction = {
        **{"cluster": "prod-eu", **_name(7), "is_forgotten": False},
        **{"held_bytes": 60 * _GIB, "cleanup_policy": "compact", "uncleaned_bytes": 50 * _GIB},
        **{"status": "hanging", "transactional_id": None, "producer_id": 4_711},
        **{"since_ms": NOW_MS - DAY_MS, "held_offsets": 123_456_789},
        "command": "kafka-transactions.sh --bootstrap-server $BROKER abort --topic"
        " payments.authorized --partition 7 --start-offset 123456789",
    }
    return ClusterFacts(_rows(totals), leaders, ill, changes, [_rows(transaction)])


def _copies() -> CopyFacts:
    held = ["broker-1", "broker-2", "broker-3"]
    logs, worst = [], []
    for lane in range(PARTITIONS):
        is_other = lane % 131 == 0
        differing = {"copy": "broker-2", "is_finding": lane % 262 == 0, "kind": "bit rot"}
        logs.append(
            _rows(
                {
                    **_name(lane),
                    "is_finding": lane % 262 == 0,
                    "held": held[:2] if lane % 997 == 0 else held,
                    "differing": [_rows(differing)] if is_other else [],
                }
            )
        )
        if lane % 262 == 0:
            where = {"from_offset": 29_123_456, "until_offset": 29_123_999, "row": 0}
            named = {"kind": "bit rot", "copies": ["broker-2"], "right_copies": held[::2]}
            detail = "sha256 of the range differs, its checksums hold in broker-1 and broker-3"
            worst.append(_rows({**_name(lane), **where, **named, "detail": detail}))
    logs.sort(key=lambda row: (row["topic"], row["partition"]))
    return CopyFacts(NOW_MS - 3_600_000, PARTITIONS, logs, worst, len(worst))


def _crash_dir(broker: int, disk: int) -> Row:
    def work(segments: int, recovered: int) -> Row:
        names = ("segments", "recovered_segments", "recovered_bytes", "recovered_batches")
        values = (segments, recovered, recovered * _GIB, recovered * 60_000)
        return _rows(dict(zip(names, values, strict=True)))

    place = {"cluster": "prod-eu", "broker_id": broker, "log_dir": f"/data/kafka-logs-{disk}"}
    sums = {"work": work(50_000, 834), "kit_work": work(50_000, 0), "largest": work(60, 1)}
    return _rows({**place, "logs": 834, **sums})


def few_partitions(data: ReportData, count: int) -> ReportData:
    """Give a report with the first partitions of another one, and a row of each table for each."""
    cluster, copies, forecast = data.cluster, data.copies, data.forecast
    assert cluster is not None
    assert copies is not None
    assert forecast is not None
    lanes, logs = data.lanes[:count], copies.maps[:count]
    return replace(
        data,
        totals=_rows({**data.totals.asDict(), "logs": count}),
        lanes=lanes,
        spans=[span for span in data.spans if span["lane"] < count],
        damaged=data.damaged[:count],
        odd=data.odd[:count],
        forecast=replace(forecast, blocked=forecast.blocked[:count]),
        cluster=replace(cluster, ill=cluster.ill[:count], changes=cluster.changes[:count]),
        copies=replace(copies, logs=count, maps=logs, worst=copies.worst[:count]),
    )
