"""Random logs, and what retention does with them, written as the broker's plain loops."""

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
Predicate = Callable[["Segment", "Segment | None"], bool]


@dataclass(frozen=True)
class Segment:
    """A segment as retention sees it; ``timestamp`` -1: no record has one."""

    base: int
    next: int
    bytes: int
    timestamp: int
    mtime: int

    @property
    def largest(self) -> int:
        """Give Kafka's largest timestamp."""
        return self.timestamp if self.timestamp >= 0 else self.mtime


@dataclass
class Log:
    """A log and its configuration; ``config`` by the names of ``TopicConfig``."""

    segments: list[Segment]
    high_watermark: int | None
    log_start: int
    highest_remote: int | None
    config: dict[str, Any]
    now: int = NOW_MS
    left: list[Segment] = field(default_factory=list)

    def request(self) -> dict[str, Any]:
        """Give what the referee asks for."""
        config = {key.replace("_", "."): str(value).lower() for key, value in self.config.items()}
        return {**asdict(self), "config": config}


def draw_log(rng: random.Random) -> Log:
    """Draw a log around the limits of its own configuration."""
    limit = rng.choice([0, HOUR_MS, 24 * HOUR_MS])
    ages = [0, 1, limit - 1, limit, limit, limit + 1, limit + 1, limit + HOUR_MS, limit + HOUR_MS]
    ages += [-HOUR_MS, NOW_MS, NOW_MS - NOW_MS // 1000, NOW_MS - NOW_MS * 1000]
    old = rng.random() < 0.3  # every segment expired, so that the active one is reached
    segments = []
    base = rng.choice([0, 7])
    for _ in range(rng.randint(1, 6)):
        records = rng.randint(1, 4)
        age = limit + 1 + rng.randrange(9) if old else rng.choice(ages)
        timestamp = rng.choice([NOW_MS - age] * 4 + [-1])
        mtime = NOW_MS - rng.choice([limit + 1, limit] if old else [limit + 1, limit, 0, -HOUR_MS])
        size = 0 if rng.random() < 0.05 else rng.choice([150, 200, 200, 300])
        segments.append(Segment(base, base + (records if size else 0), size, timestamp, mtime))
        base += records + rng.choice([0, 0, 0, 3])
    if rng.random() < 0.2:
        end = segments[-1].next
        if segments[-1].bytes:
            segments.append(Segment(end, end, 0, -1, NOW_MS))
    segments = [
        part if part.bytes else Segment(part.base, part.base, 0, -1, part.mtime)
        for part in segments
    ]
    end = segments[-1].next
    total = sum(part.bytes for part in segments)
    sizes = [-1, -1, -7, 0, total, total + 1, total - 150, total - 200, total - 201, total // 2]
    offsets = [part.base for part in segments] + [end, end - 1]
    tiered = rng.random() < 0.4
    config = {
        "retention_ms": rng.choice([-1, limit, limit, limit]),
        "retention_bytes": rng.choice(sizes),
        "cleanup_policy": rng.choice(["delete"] * 5 + ["compact", "compact,delete", ""]),
        "local_retention_ms": rng.choice([-2, -1, limit]),
        "local_retention_bytes": rng.choice([-2, *(size for size in sizes if size >= -1)]),
        "remote_storage_enable": tiered,
        "remote_log_copy_disable": rng.random() < 0.2,
    }
    return Log(
        segments,
        rng.choice([None, None, end, end, *offsets]),
        rng.choice([0, 0, 0, *offsets]) if end else 0,
        rng.choice([None, *(offset - 1 for offset in offsets), end - 1, end - 1]),
        config,
    )


def rolled_by_size_then_gone_by_time() -> Log:
    """Give a log that a random run found: the roll of one pass lets the next one delete."""
    config = {
        "retention_ms": 0,
        "retention_bytes": 0,
        "cleanup_policy": "delete",
        "local_retention_ms": 0,
        "local_retention_bytes": 0,
        "remote_storage_enable": True,
        "remote_log_copy_disable": False,
    }
    segment = Segment(7, 11, 200, NOW_MS - HOUR_MS, NOW_MS + HOUR_MS)
    return Log([segment], high_watermark=10, log_start=11, highest_remote=None, config=config)


def run_retention(log: Log, version: tuple[int, ...]) -> tuple[dict[int, str], bool]:
    """Do what a broker of ``version`` does: give the rule by deleted base offset, and the roll."""
    loop = _Loop(log, version)
    passes = {"log_start_offset": loop.by_start, "retention_bytes": loop.by_size}
    passes["retention_ms"] = loop.by_time
    order = ["log_start_offset", "retention_bytes", "retention_ms"]
    if version < (3, 0):
        order.reverse()
    if version < (0, 11):
        order.remove("log_start_offset")
    deletes = "delete" in log.config["cleanup_policy"].split(",")
    if version >= (4, 2) and log.config["cleanup_policy"] == "" and loop.copies:
        deletes = True
    for name in order:
        if deletes or (name == "log_start_offset" and version >= (2, 1)):
            loop.one_pass(name, passes[name]())
    return loop.deleted, loop.rolled


class _Loop:
    def __init__(self, log: Log, version: tuple[int, ...]) -> None:
        config = log.config
        self.log, self.version = log, version
        self.alive = list(log.segments)
        self.deleted: dict[int, str] = {}
        self.rolled = False
        self.end = log.segments[-1].next
        compacts = "compact" in config["cleanup_policy"]
        self.tiered = version >= (3, 6) and config["remote_storage_enable"] and not compacts
        self.copies = self.tiered and not config["remote_log_copy_disable"]
        self.limit_ms = self._limit("retention_ms")
        self.limit_bytes = self._limit("retention_bytes")

    def _limit(self, name: str) -> int:
        local = self.log.config[f"local_{name}"]
        value: int = local if self.copies and local != -2 else self.log.config[name]
        return value

    def by_start(self) -> Predicate:
        return lambda _, following: following is not None and following.base <= self.log.log_start

    def by_size(self) -> Predicate:
        total = sum(segment.bytes for segment in self.alive)
        if self.limit_bytes < 0 or total < self.limit_bytes:
            return lambda *_: False
        excess = total - self.limit_bytes

        def is_beyond(segment: Segment, _: Segment | None) -> bool:
            nonlocal excess
            if excess - segment.bytes < 0:
                return False
            excess -= segment.bytes
            return True

        return is_beyond

    def by_time(self) -> Predicate:
        if self.limit_ms < 0 and self.version >= (0, 9):
            return lambda *_: False

        def is_expired(segment: Segment, _: Segment | None) -> bool:
            clock = segment.mtime if self.version < (0, 10, 1) else segment.largest
            return self.log.now - clock > self.limit_ms

        return is_expired

    def one_pass(self, name: str, predicate: Predicate) -> None:
        for segment in list(self.alive):
            rest = self.alive[1:]
            following = rest[0] if rest else None
            upper = self.end if following is None else following.base
            if not (self._is_committed(upper) and predicate(segment, following)):
                return
            if following is None and segment.bytes == 0:
                return
            goes = self._is_uploaded(upper, following)
            if goes:
                self.deleted[segment.base] = name
                self.alive = rest
            if following is None and (goes or self.tiered):
                self.rolled = True
                self.alive = [*self.alive, Segment(self.end, self.end, 0, -1, self.log.now)]
            if not goes:
                return

    def _is_committed(self, upper: int) -> bool:
        if self.version < (1, 0):
            return True
        if self.log.high_watermark is None:
            return self.version >= (2, 4)
        return max(self.log.high_watermark, self.log.log_start) >= upper

    def _is_uploaded(self, upper: int, following: Segment | None) -> bool:
        if not self.copies:
            return True
        highest = -1 if self.log.highest_remote is None else self.log.highest_remote
        is_below_start = following is not None and self.log.log_start >= following.base
        return (upper > 0 and upper - 1 <= highest) or is_below_start
