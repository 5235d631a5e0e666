"""Compare a mirror with its source: list both, pair the logs by name, compare their records."""

from contextlib import ExitStack
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from kafka_segments.console.not_known import tell_not_known
from kafka_segments.engine.derived.replicas_at_hand import with_logs_at_hand
from kafka_segments.engine.frames.engines import computed_once, expect
from kafka_segments.engine.frames.packing import TellLoad, tasks_for, tell_nobody
from kafka_segments.engine.limits import Work
from kafka_segments.engine.sources.list import list_sources
from kafka_segments.errors import UsageError
from kafka_segments.files.folders import kinds
from kafka_segments.kafka.text.plain_text import first_of
from kafka_segments.verbs.copies.divergence.absent_replicas import by_broker
from kafka_segments.verbs.copies.divergence.decide.frames import (
    chosen_segments,
    listed_logs,
    with_copy,
)
from kafka_segments.verbs.copies.divergence.mirror.decide.logs import (
    LOG,
    best_replicas,
    logs_to_mirror,
    of_offset_syncs,
    pair_with_mirrors,
)
from kafka_segments.verbs.copies.divergence.mirror.decide.unknown_mirrors import unknown_mirrors
from kafka_segments.verbs.copies.divergence.mirror.mirrored_records import LogSegments
from kafka_segments.verbs.copies.divergence.mirror.tasks import compare_mirrors
from kafka_segments.verbs.copies.divergence.policies.cleanup import CleanupPolicies
from kafka_segments.verbs.copies.divergence.policies.read import (
    MetadataHistory,
    history_at_hand,
    with_history,
)
from kafka_segments.verbs.copies.divergence.policies.tasks import with_policy
from kafka_segments.verbs.copies.divergence.read_copies import load_of, refuse_missing, tell_links

_TASKS_A_CORE = 4  # logs are of different sizes
_NAMED = 20


@dataclass(frozen=True)
class MirrorOptions:
    """What is compared. URIs are absolute.

    Attributes:
        source: where the source's logs lie. mirror: where the mirror's logs lie.
        prefix: what the mirror puts in front of the source's topic names.
        policies: what is known of topics' cleanup.policy on both sides.
    """

    source: tuple[str, ...]
    mirror: tuple[str, ...]
    prefix: str = ""
    policies: CleanupPolicies = field(default_factory=CleanupPolicies.of_nothing)

    def __post_init__(self) -> None:
        for uri in self.source:
            if uri in self.mirror:
                raise UsageError(f"{uri} is given as source and as mirror: leave one")


@dataclass(frozen=True)
class Mirrored:
    """The columns of ``tasks_mirror.MIRRORED``, and how many logs only one side has."""

    rows: DataFrame
    logs: int
    unmirrored: int


def run_mirror(
    spark: SparkSession, options: MirrorOptions, caches: ExitStack, tell: TellLoad = tell_nobody
) -> Mirrored:
    """Compare each log that both have; the rows are cached until ``caches`` closes.

    If several brokers hold a log, the replica that goes on furthest is read.

    Raises:
        SourceError: a folder cannot be listed.
        UsageError: no log is in both.
    """
    uris = [*options.source, *options.mirror]
    listed, loads = list_sources(spark, uris, caches, tell=tell_not_known)
    refuse_missing(listed)
    if kinds.NOT_FOLLOWED in loads:
        tell_links(listed)
    named = listed.transform(with_copy({uri: uri for uri in uris}))
    history = history_at_hand(named, caches)
    policies = with_history(options.policies, history)
    there = computed_once(named.transform(listed_logs).transform(with_policy(policies)), caches)
    choose = best_replicas(there, options.source)
    segments = computed_once(named.transform(chosen_segments(there)).transform(choose), caches)
    syncs = _logs(segments.transform(of_offset_syncs))
    found = computed_once(segments.transform(pair_with_mirrors(options.prefix)), caches)
    logs = found.select(*LOG).distinct().count()
    if not logs:
        raise UsageError(
            f"no log of the source has a mirror: topics named {options.prefix or 'as the source'}…"
            " expected, --prefix says what stands in front of the source's names"
        )
    unmirrored = segments.transform(logs_to_mirror(options.prefix)).count() - logs
    _tell_untold(history, there, options)
    load = load_of(found)
    tasks = min(logs, tasks_for(spark, load))
    expect(spark, Work.LIST, load)
    tell(load, tasks)
    spread = found.repartition(tasks, *LOG)
    return Mirrored(
        computed_once(spread.transform(compare_mirrors(syncs)), caches), logs, unmirrored
    )


def _tell_untold(history: MetadataHistory, logs: DataFrame, options: MirrorOptions) -> None:
    """Say of which logs that the metadata logs name it is not known whether they are mirrored."""
    if history.named is None:
        return
    found = history.named.transform(with_logs_at_hand(by_broker(logs)))
    untold = found.transform(unknown_mirrors(logs, options.source, options.prefix))
    names = [f"{topic}-{number}" for topic, number in untold.orderBy(*LOG).collect()]
    if names:
        tell_not_known(
            [
                f"not known whether {first_of(names, _NAMED)} are mirrored: of them, or of their"
                " mirrors, no replica that the metadata log has in sync is at hand; add the disks"
                " of more brokers as --source and --mirror"
            ]
        )


def _logs(segments: DataFrame) -> list[LogSegments]:
    """Return the logs that segments make up."""
    logs: dict[tuple[str, str, int], list[tuple[str, int]]] = {}
    for row in segments.orderBy("base_offset").collect():
        name = row["side"], row["topic"], row["partition"]
        logs.setdefault(name, []).append((row["path"], row["size_bytes"]))
    return [LogSegments(found, 0) for found in logs.values()]
