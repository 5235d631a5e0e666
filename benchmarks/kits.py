"""Start a killed broker with a recovery kit and without one, side by side on one disk.

    python benchmarks/kits.py /data/scratch --gigabytes 8 --segments 2000 --kills 4 --threads 1 4

A real broker is loaded in as many parts, half of it by transactions, and killed with more on its
way after each. Each time it starts again on a copy after `recovery kit` and `apply`, and on its own
disk without, which `recovery forecast --calibrate` foretells. What it answers is compared: offsets
by time, producers, leader epochs, and after the last kill every record by both isolation levels.
Then the one with a kit goes on: it produces, compacts and deletes, stops cleanly, is killed once
more, and produces again. Prints a line for each figure. With `--cold` the page cache has nothing of
the logs before each step, as after a restart of the machine; else it has all that fits.
"""

import argparse
import contextlib
import hashlib
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from confluent_kafka import Consumer, KafkaError, TopicPartition  # noqa: E402
from confluent_kafka.admin import AdminClient  # noqa: E402

from kafka_segments.verbs.change.recovery.forecast.report import said_of  # noqa: E402
from kafka_segments.verbs.change.recovery.forecast.run import ForecastOptions, run_forecast  # noqa: E402
from support.kafka.crashed_broker import RECORD_BYTES, START_MS, errors, load, recovered, started  # noqa: E402
from support.kafka.kafka_broker import KafkaBroker  # noqa: E402
from support.kafka.kafka_clients import WAIT_SECONDS, producer  # noqa: E402
from support.kafka.killed_broker import KilledBroker  # noqa: E402

TOPICS = [f"orders{number}" for number in range(8)]
_LOADED = re.compile(r"Loaded (\d+) logs in (\d+)ms")
_LOAD_OF_LOG = re.compile(r"Completed load of Log\(.* in (\d+)ms \(")
_ASKED = ["EARLIEST", "LATEST", "MAX_TIMESTAMP", *(str(START_MS + 1000 * i) for i in range(9))]
_AT_ONCE = 10_000
_BATCH_BYTES = 16_384  # the default of Kafka's own producer
_ON_THEIR_WAY = 2000
_QUEUED = 1_000_000
_READ_BYTES = 8 * 1024 * 1024
_MOST_SECONDS = 1200
_A_WHILE_SECONDS = 20
_HOUR_MS = 3_600_000


def main() -> None:
    """Run as the arguments say."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--gigabytes", type=float, default=8)
    arguments.add_argument("--segments", type=int, default=2000)
    arguments.add_argument("--kills", type=int, default=3)
    arguments.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=[2],
        help="of recovery, a kill each",
    )
    arguments.add_argument("--record-bytes", type=int, default=RECORD_BYTES)
    arguments.add_argument("--batch-bytes", type=int, default=_BATCH_BYTES, help="at most")
    arguments.add_argument("--cold", action="store_true", help="start with an empty page cache")
    given = arguments.parse_args()
    segment_bytes = int(given.gigabytes * 1e9 / given.segments)
    settings: dict[str, Any] = {
        "log_segment_bytes": max(segment_bytes, 1 << 20),
        "log_flush_offset_checkpoint_interval_ms": _HOUR_MS,
        "log_initial_task_delay_ms": _HOUR_MS,
    }
    load_part = partial(
        load_and_kill,
        megabytes=round(given.gigabytes * 1e3 / len(TOPICS) / given.kills),
        record_bytes=given.record_bytes,
        batch_bytes=given.batch_bytes,
    )
    disk, ours, kit = (given.folder / name for name in ("disk", "ours", "kit"))
    with KilledBroker(disk, **settings) as broker:
        broker.start_broker()
        load_part(broker)
    for number in range(given.kills):
        shutil.rmtree(ours, ignore_errors=True)
        shutil.rmtree(kit, ignore_errors=True)
        link_copy(disk / "logs", ours / "logs")
        is_last = number == given.kills - 1
        prepare = forget_pages if given.cold else warm_pages
        threads = given.threads[number % len(given.threads)]
        settings["num_recovery_threads_per_data_dir"] = threads
        print(f"kill {number + 1}: {size_of(disk / 'logs')}, {threads} threads", flush=True)
        prepare(ours / "logs")
        make_and_apply(ours / "logs", kit)
        prepare(ours / "logs")
        with_kit, kit_ms = answers_of(ours, settings, reads=is_last)
        prepare(disk / "logs")
        told = foretell(disk / "logs", threads, is_cold=given.cold)
        prepare(disk / "logs")
        then = None if is_last else load_part
        without, ms = answers_of(disk, settings, reads=is_last, then=then)
        print(
            f"  {ms / kit_ms:.1f} times as long without a kit; forecast {told:.2f} s,"
            f" {told * 1e3 / ms:.2f} of it"
        )
        compare(without, with_kit)
    shutil.rmtree(disk)
    go_on(ours, settings)


def load_and_kill(broker: KafkaBroker, megabytes: int, record_bytes: int, batch_bytes: int) -> None:
    """Load each topic, and kill the broker while more is on its way."""
    sizes = dict.fromkeys(TOPICS, megabytes)
    queued = {"queue_buffering_max_messages": _QUEUED}
    load(broker, sizes, record_bytes=record_bytes, batch_size=batch_bytes, **queued)
    arrived: list[object] = []
    sender = producer(broker.bootstrap, acks=1, batch_size=batch_bytes)
    for number in range(_ON_THEIR_WAY):
        sender.produce(
            TOPICS[number % len(TOPICS)],
            os.urandom(10_000),
            partition=0,
            on_delivery=lambda _, message: arrived.append(message),
        )
    while not arrived:
        sender.poll(0.01)
    broker.kill()
    sender.purge()


def forget_pages(log_dir: Path) -> None:
    """Drop what the page cache has of the logs, as a restart of the machine does."""
    os.sync()
    for path in log_dir.rglob("*.log"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def warm_pages(log_dir: Path) -> None:
    """Read the logs once, so that all of them lie in the page cache if they have room there."""
    os.sync()
    for path in log_dir.rglob("*.log"):
        with path.open("rb", buffering=0) as file:
            while file.read(_READ_BYTES):
                pass


def link_copy(source: Path, target: Path) -> None:
    """Copy a log directory; but for the last segment of a log, which a start may cut, by links."""
    target.mkdir(parents=True)
    for path in sorted(source.rglob("*")):
        copy = target / path.relative_to(source)
        if path.is_dir():
            copy.mkdir(parents=True)
        elif path.suffix == ".log" and path != max(path.parent.glob("*.log")):
            os.link(path, copy)
        else:
            subprocess.run(["cp", "--preserve=all", "--sparse=always", path, copy], check=True)
    os.sync()


def size_of(log_dir: Path) -> str:
    """Say how many segments and bytes there are."""
    sizes = [path.stat().st_size for path in log_dir.rglob("*.log")]
    return f"{len(sizes)} segments, {sum(sizes) / 1e9:.2f} GB"


def cost_of(log_dir: Path, seconds: float, cpu: float) -> str:
    """Say what a run over all segments cost."""
    size = sum(path.stat().st_size for path in log_dir.rglob("*.log"))
    return (
        f"{seconds:.1f} s, {cpu:.1f} s of CPU, {cpu / seconds:.1f} cores,"
        f" {size / seconds / 1e9:.2f} GB/s"
    )


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make_and_apply(log_dir: Path, kit: Path) -> None:
    """Make a kit and apply it; print what each took."""
    for words in (("kit", "--source", log_dir, "--out", kit), ("apply", kit, "--execute")):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        program = [sys.executable, "-m", "kafka_segments", "recovery", *map(str, words)]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        taken = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        said = " | ".join(done.stderr.splitlines())
        print(f"  recovery {words[0]}: {cost_of(log_dir, taken, cpu)}; {said}", flush=True)
        if done.returncode not in (0, 1):
            raise RuntimeError(done.stderr)


def foretell(log_dir: Path, threads: int, *, is_cold: bool) -> float:
    """Forecast a start of the broker without a kit; return its seconds."""
    options = ForecastOptions(
        threads=(threads,),
        sources=(str(log_dir),),
        is_cold=is_cold,
        calibrates_in=log_dir.parent,
    )
    forecast = run_forecast(options)
    print(f"  {said_of(forecast.costs).strip()}", flush=True)
    return next(row.seconds for row in forecast.rows if not row.with_kit)


def answers_of(
    folder: Path,
    settings: Mapping[str, Any],
    *,
    reads: bool,
    then: Callable[[KafkaBroker], None] | None = None,
) -> tuple[dict[str, Any], int]:
    """Start a broker, print how long its logs took, ask it, do something more, and kill it.

    Return its answers, and the ms that its logs took.
    """
    (folder / "server.log").unlink(missing_ok=True)
    with started(folder, **settings) as broker:
        text = broker.log_file.read_text()
        found = _LOADED.search(text)
        assert found is not None
        read = {topic: len(bases) for topic, bases in recovered(broker).items()}
        of_logs = sum(map(int, _LOAD_OF_LOG.findall(text)))
        assert broker._process is not None
        cpu = cpu_seconds(broker._process.pid)
        print(
            f"  {folder.name}: loaded {found[1]} logs in {found[2]} ms, {of_logs} ms over the logs,"
            f" {sum(read.values()) - read.get('__cluster_metadata', 0)} segments recovered,"
            f" {cpu:.1f} s of CPU until the broker had started",
            flush=True,
        )
        answers: dict[str, Any] = {
            "offsets": broker.list_offsets({f"{topic}-0": _ASKED for topic in TOPICS})
        }
        for topic in TOPICS:
            answers[f"producers of {topic}"] = broker.producers(f"{topic}-0")
            epochs = broker.log_dir / f"{topic}-0" / "leader-epoch-checkpoint"
            answers[f"epochs of {topic}"] = epochs.read_text().splitlines()[2:]
            for level in ("read_uncommitted", "read_committed") if reads else ():
                answers[f"{topic} {level}"] = digest(broker, topic, level)
        if then is not None:
            then(broker)
        return answers, int(found[2])


def digest(broker: KafkaBroker, topic: str, isolation: str) -> tuple[int, int, str]:
    """Read a topic's partition; return the records, the last position, a digest of all of it."""
    reader = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.max.bytes": 50_000_000,
            "max.partition.fetch.bytes": 20_000_000,
        }
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    seen, count, position, is_end = hashlib.blake2b(), 0, -1, False
    end = time.monotonic() + _MOST_SECONDS
    while not is_end:
        assert time.monotonic() < end, f"{topic}: {count} records, and no end of the partition"
        for message in reader.consume(_AT_ONCE, timeout=1):
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                is_end, position = True, message.offset()
                break
            seen.update(b"%d %d " % (message.offset(), message.timestamp()[1]))
            seen.update(message.key() or b"")
            seen.update(message.value() or b"")
            count += 1
    reader.close()
    return count, position, seen.hexdigest()


def compare(without: Mapping[str, Any], with_kit: Mapping[str, Any]) -> None:
    """Print whether all answers are equal.

    Raises:
        AssertionError: some are not.
    """
    differ = [name for name, answer in without.items() if with_kit[name] != answer]
    records = sum(answer[0] for name, answer in without.items() if name.endswith("_uncommitted"))
    print(f"  {len(without)} answers, {records} records read: {differ or 'equal'}")
    assert not differ, [(without[name], with_kit[name]) for name in differ[:2]]


def go_on(folder: Path, settings: Mapping[str, Any]) -> None:
    """Produce, compact and delete on the disk with a kit; stop cleanly, kill, produce again."""
    cleaning = {
        **settings,
        "log_initial_task_delay_ms": 1000,
        "log_cleaner_enable": "true",
        "log_cleaner_min_cleanable_ratio": 0.01,
        "log_cleaner_backoff_ms": 500,
        "log_retention_check_interval_ms": 1000,
        "log_segment_delete_delay_ms": 500,
    }
    for number, ending in enumerate(("stopped cleanly", "killed", "at the end")):
        (folder / "server.log").unlink(missing_ok=True)
        with started(folder, **cleaning) as broker:
            if number == 0:
                compact_and_delete(broker)
            produced, end = 0, time.monotonic() + _A_WHILE_SECONDS
            while time.monotonic() < end:
                for topic in TOPICS:
                    produce(broker, topic)
                produced += 1
            wrong = errors(broker)
            print(
                f"  {ending}: {produced} transactions to each of {len(TOPICS)} topics, errors:"
                f" {wrong or 'none'}",
                flush=True,
            )
            assert not wrong
            if number == 0:
                broker.stop_broker()


def produce(broker: KafkaBroker, topic: str) -> None:
    """Produce in a transaction, which ends the one that is open."""
    sender = producer(broker.bootstrap, transactional_id="t0")
    sender.init_transactions(WAIT_SECONDS)
    sender.begin_transaction()
    for number in range(100):
        sender.produce(topic, b"more", key=b"%d" % (number % 10), partition=0)
    sender.commit_transaction(WAIT_SECONDS)


def compact_and_delete(broker: KafkaBroker) -> None:
    """Compact one topic and delete half of another's segments; wait until both are seen."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    half = sum(path.stat().st_size for path in broker.log_dir.glob(f"{TOPICS[1]}-0/*.log")) // 2
    configs = {
        TOPICS[0]: {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
        TOPICS[1]: {"retention.bytes": str(half)},
    }
    before = {topic: segments_of(broker, topic) for topic in configs}
    alter(admin, configs)
    for topic, what in ((TOPICS[0], "compacted"), (TOPICS[1], "deleted")):
        end = time.monotonic() + WAIT_SECONDS
        while before[topic].items() <= segments_of(broker, topic).items():
            assert time.monotonic() < end, f"{topic} is not {what}"
            produce(broker, topic)
        left = len(segments_of(broker, topic))
        print(f"  {topic} {what}: {len(before[topic])} segments, {left} left")


def segments_of(broker: KafkaBroker, topic: str) -> dict[str, int]:
    """Return the inode of each segment of a topic's partition by its name."""
    found = (broker.log_dir / f"{topic}-0").glob("*.log")
    with contextlib.suppress(FileNotFoundError):
        return {path.name: path.stat().st_ino for path in found}
    return segments_of(broker, topic)  # one went away meanwhile


def alter(admin: AdminClient, configs: Mapping[str, Mapping[str, str]]) -> None:
    """Set configs of topics."""
    from confluent_kafka.admin import (  # noqa: PLC0415
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            topic,
            incremental_configs=[
                ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                for name, value in wanted.items()
            ],
        )
        for topic, wanted in configs.items()
    ]
    for future in admin.incremental_alter_configs(resources).values():
        future.result(60)


if __name__ == "__main__":
    main()
