"""The table of foreign files: what lies where Kafka's segments are looked for, and what to do.

Names alone tell: no file is opened. What a broker does at its start depends on the place: it reads
over files of a log directory and of a log's folder, and ends at a folder in a log directory whose
name is no partition's. Source: LogManager.loadLogs, LogLoader (4.3.1).
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class Foreign(NamedTuple):
    """What a file is.

    Attributes:
        what: The system or program, and what of it.
        step: What to do.
        has_records: It may hold records, which nothing here reads: it is for a person to look at.
    """

    what: str
    step: str
    has_records: bool = True


_PATTERNS: tuple[tuple[str, Foreign], ...] = (
    (
        r"(?:^|/)[0-9]+_[0-9]+/[^/]*-v[0-9]+\.(?:log|base_index|compaction_index)(?:\.[0-9]+)?$"
        r"|(?:^|/)[0-9]+(?:-[0-9]+){1,3}-v[0-9]+\.(?:log|base_index)(?:\.[0-9]+)?$",
        Foreign(
            "Redpanda's segments, in a format of its own",
            "have Redpanda read them, and copy topics to Kafka by MirrorMaker or a client",
        ),
    ),
    (
        r"(?:^|/)(?:segment_partition_[0-9]+_from_offset_[0-9]+_\w+|index_partition_[0-9]+"
        r"|consumer_offsets_partition_[0-9]+)$",
        Foreign(
            "files of a backup tool (the connector kafka-backup), in a format of its own",
            "restore them by the tool that wrote them",
        ),
    ),
    (
        r"(?:^|/)segment-[0-9]{3,}(?:\.\w+){0,2}$",
        Foreign(
            "files of a backup tool, in a format of its own",
            "restore them by the tool that wrote them",
        ),
    ),
    (
        r"(?:^|/)[^/]+\+[0-9]+\+[0-9]+(?:\+[0-9]+)?(?:\.\w+)+$"
        r"|(?:^|/)[^/]+-[0-9]+-[0-9]+\.(?:jsonl?|csv|avro|parquet|bin)?\.?(?:gz|zst|snappy|sz)?$",
        Foreign(
            "records that a sink connector exported, without offsets' batches",
            "load them back by the matching source connector",
        ),
    ),
    (
        r"(?:^|/)[0-9]{20}_[0-9]+_v[0-9]+\.[\w-]+$",
        Foreign("Confluent's tiered segments", "have Confluent's broker read them"),
    ),
    (
        r"(?:^|/)current/(?:[0-9a-f]{1,16}\.(?:log|txn|idx)|lastId|lastMark|VERSION)$",
        Foreign("BookKeeper's ledgers (Apache Pulsar)", "have Pulsar read them"),
    ),
    (
        r"(?:^|/)version-2/(?:(?:log|snapshot)\.[0-9a-f]+|acceptedEpoch|currentEpoch)$",
        Foreign("ZooKeeper's data", "give the folders of log.dirs instead", has_records=False),
    ),
    (
        r"(?:^|/)(?:[0-9]{6,}\.sst|MANIFEST-[0-9]{6,}|OPTIONS-[0-9]{6,})$",
        Foreign(
            "a RocksDB store, as Kafka Streams keeps them",
            "leave it to its application: state.dir does not belong into log.dirs",
            has_records=False,
        ),
    ),
    (
        r"(?:^|/)[0-9]+\.blk$|(?:^|/)[0-9]{20}\.segment$",
        Foreign("messages of NATS or RabbitMQ, in a format of their own", "have that server read"),
    ),
    (
        r"(?:^|/)_delta_log/|\.parquet$|\.avro$|\.orc$",
        Foreign("tables or exported records", "read them by what wrote them"),
    ),
    (
        r"\.(?:tar|tgz|txz|zip|7z|rar)(?:\.\w+)?$",
        Foreign("a packed archive", "unpack it, and give the folder in it"),
    ),
    (
        r"(?:^|/)(?:server|controller|state-change|log-cleaner|kafka[\w-]*|zookeeper[\w-]*"
        r"|connect[\w-]*|mirror[\w-]*|tools[\w-]*|gc|kafkaServer[\w-]*|security[\w-]*)"
        r"\.(?:log|out|err)(?:[.\-_][^/]*)?$",
        Foreign(
            "what Kafka's programs log about themselves",
            "leave it, or let LOG_DIR put it elsewhere",
            has_records=False,
        ),
    ),
    (
        r"(?:^|/)(?:hs_err_pid[0-9]+\.log|java_pid[0-9]+\.hprof|core(?:\.[0-9]+)?|[^/]*\.hprof)$",
        Foreign(
            "what a JVM left when it crashed or ran out of memory",
            "look at it, then remove it",
            has_records=False,
        ),
    ),
    (
        r"(?:^|/)(?:\.DS_Store|Thumbs\.db|desktop\.ini|\._[^/]+|\.nfs[0-9a-f]+|[^/]+~|\.[^/]+\.sw[op])$",
        Foreign("what an operating system or editor left", "leave it", has_records=False),
    ),
)
_TABLE = tuple((re.compile(pattern, re.ASCII), foreign) for pattern, foreign in _PATTERNS)


def foreign_file(folder: str, name: str) -> Foreign | None:
    """Return what a file is by its folder's name and its own; None: nobody knows it."""
    path = f"{folder}/{name}"
    return next((foreign for pattern, foreign in _TABLE if pattern.search(path)), None)


def foreign_reason(foreign: Foreign, *, is_read_over: bool) -> str:
    """Say in words what a file is, what a broker does and what to do.

    ``is_read_over``: it lies in a log directory or log itself, else in a folder that is neither.
    """
    broker = (
        "a broker passes over it"
        if is_read_over
        else "a broker does not start where its folder lies in a log directory"
    )
    return f"{foreign.what}: not read; {broker}; {foreign.step}"


def foreign_text(files: Iterable[tuple[str, str]]) -> str | None:
    """Say of what most foreign files are; None: there are none.

    ``files``: the names of folder and file of each.
    """
    counts: Counter[Foreign] = Counter()
    examples: dict[Foreign, str] = {}
    for folder, name in files:
        foreign = foreign_file(folder, name)
        if foreign is not None:
            counts[foreign] += 1
            examples.setdefault(foreign, f"{folder}/{name}".lstrip("/"))
    if not counts:
        return None
    # records before what programs left beside them
    foreign = max(counts, key=lambda found: (found.has_records, counts[found]))
    count = counts[foreign]
    return (
        f"{count} file{'s' * (count != 1)} there {'is' if count == 1 else 'are'} {foreign.what},"
        f" e.g. {examples[foreign]}: {foreign.step}"
    )
