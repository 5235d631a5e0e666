"""Hold `recovery forecast` against the starts of a real broker that was killed under load.

    python benchmarks/forecasts.py /data/scratch --seeds 18 20 21 --threads 1 4

For each seed a load is drawn and written, and the broker killed with SIGKILL meanwhile. For each
number of threads a start on a copy is forecast with `--calibrate`, and then made. Prints a line
each: seconds that the broker logs (`Loaded … logs in … ms`), seconds forecast, and how many cores
other processes took meanwhile: a forecast is of a machine that does nothing else. On one that is
busy the seconds that a recovery thread waited for a core, by the kernel's count, tell how long it
would have taken. The last line tells how far the worst forecast is off.
`--load-only` writes the loads, to measure them later when the machine is quiet.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from kafka_segments.verbs.change.recovery.forecast.decide.forecasts import DirForecast  # noqa: E402
from kafka_segments.verbs.change.recovery.forecast.report import said_of  # noqa: E402
from kafka_segments.verbs.change.recovery.forecast.run import ForecastOptions, run_forecast  # noqa: E402
from support.kafka.kafka_clients import producer  # noqa: E402
from support.kafka.killed_broker import KilledBroker, copy_logs, start_copy  # noqa: E402

_HOUR_MS = 3_600_000
_TRANSACTIONS = 20
_LOADED = re.compile(r"Loaded \d+ logs in (\d+)ms")
_RECOVERY_THREADS = "log-recovery"
_TICKS = os.sysconf("SC_CLK_TCK")
_LONGEST_START_SECONDS = 300
_CLEANED = {
    "log_cleanup_policy": "compact",
    "log_cleaner_enable": "true",
    "log_cleaner_min_cleanable_ratio": 0.01,
    "log_cleaner_backoff_ms": 100,
}


class Load(NamedTuple):
    """What is written; sizes in bytes. ``transactional`` is a share, ``idle`` counts empty logs.

    ``keys``: of each partition, where the cleaner is at work on all logs; 0: no log is cleaned.
    ``log_dirs`` counts log directories, ``codec`` is a producer's compression.type.
    """

    partitions: int
    segment: int
    batch: int
    written: int
    transactional: float
    idle: int
    record: int
    codec: str
    keys: int
    log_dirs: int


class Timed(NamedTuple):
    """How long a start took to load logs, and how many cores other processes had meanwhile.

    ``waited``: seconds that each recovery thread waited for a core, in the mean.
    """

    seconds: float
    others: float
    waited: float


def main() -> None:
    """Measure as the arguments say."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    arguments.add_argument("--threads", type=int, nargs="+", default=[1, 4])
    arguments.add_argument("--load-only", action="store_true")
    given = arguments.parse_args()
    off = []
    for seed in given.seeds:
        disk = given.folder / str(seed)
        if not (disk / "written").exists():
            kill_under(draw(seed), disk, seed)
        for threads in () if given.load_only else given.threads:
            rows, timed = measure(disk / "logs", given.folder / "copy", threads)
            told = (
                f"{sum(row.recovered_segments for row in rows)} segments,"
                f" {sum(row.recovered_bytes for row in rows) / 1e9:.2f} GB,"
                f" {sum(row.recovered_batches for row in rows)} batches,"
                f" {sum(row.logs for row in rows)} logs in {len(rows)} directories"
            )
            seconds = max(row.seconds for row in rows)
            print(
                f"seed {seed}: {told}; {threads} threads: {timed.seconds:.2f} s, forecast"
                f" {seconds:.2f} s, {seconds / timed.seconds:.2f} of it; others had"
                f" {timed.others:.1f} cores, a thread waited {timed.waited:.2f} s for one:"
                f" {seconds / (timed.seconds - timed.waited):.2f} of the rest",
                flush=True,
            )
            off.append(abs(seconds / timed.seconds - 1))
    if off:
        print(f"{len(off)} starts; the worst forecast is off by {max(off):.0%}")


def draw(seed: int) -> Load:
    """Draw a load of up to 1.5 GB."""
    chance = random.Random(seed)
    segment = chance.choice([1, 1, 2, 4, 8]) << 20
    segments = chance.randint(300, 1500)
    return Load(
        partitions=chance.randint(3, 12),
        segment=segment,
        batch=chance.choice([2000, 4000, 16_000, 64_000]),
        written=min(segments * segment, 1_500_000_000),
        transactional=chance.choice([0.0, 0.3, 0.6]),
        idle=chance.choice([0, 10, 50]),
        record=chance.choice([1000, 1000, 1900]),
        codec=chance.choice(["none", "lz4", "zstd", "gzip", "snappy"]),
        keys=chance.choice([0, 50_000]),
        log_dirs=chance.choice([1, 3]),
    )


def kill_under(load: Load, disk: Path, seed: int) -> None:
    """Start a broker, write the load, and kill it while the last of it is on its way."""
    shutil.rmtree(disk, ignore_errors=True)
    broker = KilledBroker(
        disk,
        log_segment_bytes=load.segment,
        log_flush_offset_checkpoint_interval_ms=_HOUR_MS,
        log_initial_task_delay_ms=_HOUR_MS,
        log_dirs=",".join(map(str, log_dirs_of(disk / "logs", load.log_dirs))),
        **(_CLEANED if load.keys else {}),
    )
    topics = {"plain": load.partitions, "held": load.partitions, "idle": load.idle}
    with broker:
        broker.start_broker()
        broker.create({topic: count for topic, count in topics.items() if count})
        write(broker.bootstrap, load, random.Random(seed))
    (disk / "written").touch()
    print(f"seed {seed}: {load}", flush=True)


def log_dirs_of(first: Path, count: int) -> list[Path]:
    """Return the log directories beside the first one, which counts."""
    return [first, *(first.with_name(f"{first.name}-{number}") for number in range(1, count))]


def write(bootstrap: str, load: Load, chance: random.Random) -> None:
    """Write the records, by a plain and a transactional producer."""
    plain, held = (
        producer(
            bootstrap,
            linger_ms=20,
            batch_size=load.batch,
            queue_buffering_max_kbytes=200_000,
            transaction_timeout_ms=600_000,
            compression_type=load.codec,
            **own,
        )
        for own in ({"acks": 1}, {"transactional_id": "x"})
    )
    held.init_transactions(60)
    held.begin_transaction()
    # Half of a value compresses: as JSON does, and no two batches are alike.
    values = [chance.randbytes(load.record // 2).ljust(load.record, b"-") for _ in range(64)]
    count = load.written // load.record
    ends = max(count // _TRANSACTIONS, 1)
    for number in range(count):
        is_held = chance.random() < load.transactional
        sender, topic = (held, "held") if is_held else (plain, "plain")
        while True:
            try:
                partition = chance.randrange(load.partitions)
                key = str(chance.randrange(load.keys)) if load.keys else None
                sender.produce(topic, values[number % 64], key=key, partition=partition)
                break
            except BufferError:
                sender.poll(0.05)
        if number % 500 == 0:
            plain.poll(0)
            held.poll(0)
        if number % ends == ends - 1 and number < count - ends // 2:
            held.flush(120)
            is_third = number // ends % 3 == 0
            (held.abort_transaction if is_third else held.commit_transaction)(60)
            held.begin_transaction()
        if number == count * 49 // 50:
            plain.flush(120)


def measure(log_dir: Path, copy: Path, threads: int) -> tuple[list[DirForecast], Timed]:
    """Forecast a start on a copy, print the costs that it goes by, and make it.

    ``log_dir`` is the first one; those beside it are named after it.
    """
    shutil.rmtree(copy, ignore_errors=True)
    count = len(list(log_dir.parent.glob(f"{log_dir.name}*/")))
    copied = log_dirs_of(copy / log_dir.name, count)
    broker = start_copy(
        log_dir,
        copy,
        num_recovery_threads_per_data_dir=threads,
        log_dirs=",".join(map(str, copied)),
    )
    for source, target in zip(log_dirs_of(log_dir, count)[1:], copied[1:], strict=True):
        copy_logs(source, target)
    os.sync()
    sources = tuple(map(str, copied))
    forecast = run_forecast(
        ForecastOptions(threads=(threads,), sources=sources, calibrates_in=copy)
    )
    print(said_of(forecast.costs), end="")
    timed = timed_start(broker)
    shutil.rmtree(copy)
    return [row for row in forecast.rows if not row.with_kit], timed


def timed_start(broker: KilledBroker) -> Timed:
    """Start a broker, and kill it once its logs are loaded."""
    broker.start()
    assert broker._process is not None
    pid = broker._process.pid

    def start() -> None:
        with contextlib.suppress(Exception):  # it is killed before it answers
            broker.start_broker()

    threading.Thread(target=start, daemon=True).start()
    began: tuple[float, float] | None = None
    waited: dict[str, float] = {}
    end = time.monotonic() + _LONGEST_START_SECONDS
    while time.monotonic() < end:
        waited |= waits(pid)
        text = broker.log_file.read_text() if broker.log_file.exists() else ""
        if began is None and "Recovering unflushed" in text:
            began = time.monotonic(), others_seconds(pid)
        if found := _LOADED.search(text):
            break
        time.sleep(0.1)
    else:
        raise TimeoutError(text[-2000:])
    since, before = began or (time.monotonic(), 0.0)
    others = (others_seconds(pid) - before) / max(time.monotonic() - since, 0.1)
    broker._process.kill()
    broker._process.wait()
    broker._process = None
    return Timed(int(found[1]) / 1000, others, sum(waited.values()) / max(len(waited), 1))


def waits(pid: int) -> dict[str, float]:
    """Return how many seconds each recovery thread of a broker has waited for a core."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has ended
            if (task / "comm").read_text().startswith(_RECOVERY_THREADS):
                found[task.name] = int((task / "schedstat").read_text().split()[1]) / 1e9
    return found


def others_seconds(pid: int) -> float:
    """Return the CPU seconds of all processes but one, since the machine's start."""
    user, nice, system, _, _, *interrupts = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    own = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    busy = user + nice + system + sum(interrupts) - int(own[11]) - int(own[12])
    return busy / _TICKS


if __name__ == "__main__":
    main()
