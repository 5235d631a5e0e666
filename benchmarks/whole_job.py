"""The whole Spark job beside Kafka's recovery on as many threads; and on one core and two."""

from pathlib import Path

from sections import (
    BATCHES,
    GB,
    ROUNDS,
    Section,
    best,
    drop_from_cache,
    job,
    log_directory,
    read_only,
    usable_cores,
)

from support.kafka.kafka_referee import Referee

_FILES = 8


def bench_job(*, quick: bool) -> Section:
    """Build 8 segments with index files and tables."""
    size = (256 << 20) if quick else (8 << 30)
    threads = usable_cores()
    section = Section("The whole Spark job against `LogSegment.recover()` alone")
    section.lines += [
        f"{_FILES} segments, {size / GB:.2f} GB in all, in the page cache; {threads} threads of a"
        f" warm JVM there, `local[{threads}]` here; session start apart. *Scan job*: list, pack,"
        " recover, write the index files, rows back. *Build*: that and all tables, entries as rows"
        " among them. Warm: best of three builds into a new warehouse each, after one that warmed"
        " the JVM up.",
        "",
    ]
    columns = ("batches", "Kafka s", "scan job s", "ratio", "build s", "ratio")
    section.table(
        *columns, "first build in a new process s", "nothing changed s", "worker peak MiB"
    )
    cold = 0.0
    with Referee() as referee:
        for name, batch_bytes in BATCHES.items():
            each = size // _FILES
            with log_directory(batch_bytes=batch_bytes, files=_FILES, each=each) as files:
                kafka = _recover(referee, files, threads, batch_bytes)
                ran = job(files[0].parent.parent)
                if name == "16 KB":
                    drop_from_cache(files)
                    cold = size / best(lambda files=files: read_only(files), rounds=1) / GB
            section.row(
                name,
                f"{kafka:.2f}",
                f"{ran['scan']:.2f}",
                f"**{kafka / ran['scan']:.1f}x**",
                f"{ran['build']:.2f}",
                f"{kafka / ran['build']:.1f}x",
                f"{ran['first']:.1f}",
                f"{ran['unchanged']:.2f}",
                f"{ran['worker_mib']:.0f}",
            )
            section.figures |= {
                f"scan {name}": size / ran["scan"] / GB,
                f"build {name}": size / ran["build"] / GB,
                f"kafka {name}": size / kafka / GB,
                f"tables s a GB {name}": ran["tables"] / size * GB,
            }
    section.figures |= {"disk": cold}
    section.lines += [
        "",
        f"Reading from the disk alone: {cold:.2f} GB/s. Session start: {ran['session']:.1f} s. The"
        f" fixed cost of a warm build is about {ran['fixed']:.1f} s (one segment of 100 bytes).",
    ]
    return section


def bench_cores(*, quick: bool) -> Section:
    """Scan the same segments on one core and on two."""
    size = (256 << 20) if quick else (4 << 30)
    section = Section("From one core to two")
    section.lines += [
        f"The scan job over {_FILES} segments, {size / GB:.2f} GB in all, in the page cache, with"
        " `local[1]` and `local[2]`; Kafka's recovery with as many threads. What the driver does"
        " alone (listing, planning, collecting) does not shrink with cores.",
        "",
    ]
    columns = ("batches", "1 core s", "2 cores s", "speed-up", "Kafka 1 s", "Kafka 2 s")
    section.table(*columns, "Kafka's speed-up")
    with Referee() as referee:
        for name, batch_bytes in BATCHES.items():
            if batch_bytes < 1000 and not quick:
                continue  # a minute a round of Kafka's, and nothing new
            each = size // _FILES
            with log_directory(batch_bytes=batch_bytes, files=_FILES, each=each) as files:
                kafka = [_recover(referee, files, threads, batch_bytes) for threads in (1, 2)]
                source = files[0].parent.parent
                ours = [job(source, "--cores", str(cores))["scan"] for cores in (1, 2)]
            section.row(
                name,
                *(f"{seconds:.2f}" for seconds in ours),
                f"**{ours[0] / ours[1]:.2f}x**",
                *(f"{seconds:.2f}" for seconds in kafka),
                f"{kafka[0] / kafka[1]:.2f}x",
            )
            section.figures[f"speed-up {name}"] = ours[0] / ours[1]
    return section


def _recover(referee: Referee, files: list[Path], threads: int, batch_bytes: int) -> float:
    """Give the seconds of the quickest round of Kafka's recovery."""
    rounds = 1 if batch_bytes < 1000 else ROUNDS
    timed = referee.time_recover(files, threads=threads, warmup=min(1, rounds - 1), rounds=rounds)
    return float(min(timed["seconds"]))
