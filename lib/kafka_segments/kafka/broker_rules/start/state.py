"""A node as its start finds it, and what is known of it while its steps are decided."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_segments.kafka.broker_rules.gaps import COMPACTED_BY_KAFKA
from kafka_segments.kafka.broker_rules.start.effects import Effect
from kafka_segments.kafka.broker_rules.start.facts import Bad, StartDir, StartLog
from kafka_segments.kafka.broker_rules.start.files import Identity
from kafka_segments.kafka.broker_rules.start.logs import LogDecision
from kafka_segments.kafka.broker_rules.start.metadata_facts import CheckpointId, MetadataFacts
from kafka_segments.kafka.broker_rules.start.rules import StartFinding


class MetadataStart(NamedTuple):
    """What a start makes of the metadata log.

    Attributes:
        facts: The state that it loads; None: not known, ``unknown`` says why.
        lacks: What shows that the cluster wrote more than the start loads; None: nothing does.
        newest: The newest checkpoint.
        is_anew: The log is deleted, and begins at that checkpoint.
        start: The log's first offset.
        end: Its end, and the epoch of its last batch.
        bad_checkpoint: Why the newest checkpoint cannot be read.
        checkpoints: The names of all.
        voters: The ids of the nodes that vote, by its records; None: they name none.
    """

    facts: MetadataFacts | None = None
    unknown: str | None = None
    lacks: str | None = None
    newest: CheckpointId | None = None
    is_anew: bool = False
    start: int = 0
    end: CheckpointId = CheckpointId(0, 0)
    bad_checkpoint: str | None = None
    checkpoints: tuple[str, ...] = ()
    voters: tuple[int, ...] | None = None

    @property
    def state(self) -> MetadataFacts | None:
        """The cluster's state; None: not known, ``why_no_state`` says why."""
        return None if self.lacks else self.facts

    @property
    def why_no_state(self) -> str | None:
        """Why the cluster's state is not known; None: it is, or there is no metadata log."""
        return self.unknown or self.lacks

    @property
    def gone_checkpoints(self) -> tuple[str, ...]:
        """The checkpoints that go as the log begins anew."""
        if not self.is_anew or self.newest is None:
            return ()
        kept = f"{self.newest.offset:020d}"
        return tuple(name for name in self.checkpoints if not name.startswith(kept))


NO_METADATA = MetadataStart()


@dataclass(frozen=True)
class NodeFacts:
    """A node as it was found.

    Attributes:
        dirs: Its log directories, by their paths.
        metadata: What was read of its metadata log.
        beside: Folders beside them that may be log directories of it, and are not formatted.
        of_other_clusters: Log directories beside them of a node of the same id in another cluster.
    """

    dirs: Sequence[StartDir]
    metadata: MetadataStart = NO_METADATA
    beside: tuple[str, ...] = ()
    of_other_clusters: tuple[str, ...] = ()


@dataclass
class Node:
    """The decision about one node, step after step."""

    facts: NodeFacts
    identities: dict[str, Identity] = field(default_factory=dict)
    lost_dirs: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    @property
    def is_formatted(self) -> bool:
        """Tell whether these are a broker's directories, and no folders of copied logs."""
        return any(
            one.meta.is_there or one.metadata_folder or one.bootstrap.is_there
            for one in self.facts.dirs
        )

    @property
    def metadata_dir(self) -> str | None:
        """Return the directory that has the metadata log."""
        return next((one.uri for one in self.facts.dirs if one.metadata_folder), None)

    def is_needed(self, uri: str) -> bool:
        """Tell whether the broker ends without a directory."""
        served = [one.uri for one in self.facts.dirs if one.uri not in self.lost_dirs]
        return uri == self.metadata_dir or served in ([uri], [])

    @property
    def node_id(self) -> int | None:
        """Return the node's id: that of the metadata log's directory, else any that there is."""
        first = self.identities.get(self.metadata_dir or "")
        known = [first] if first else []
        ids = (one.node_id for one in (*known, *self.identities.values()))
        return next((node_id for node_id in ids if node_id is not None), None)


def served(node: Node) -> list[StartDir]:
    """Return the directories that the broker goes on with."""
    return [one for one in node.facts.dirs if one.uri not in node.lost_dirs]


def is_noted_compacted(log: StartLog) -> bool:
    """Tell whether Kafka itself compacts a log, or the cleaner noted that it did."""
    return log.topic in COMPACTED_BY_KAFKA or "cleaner_offset" in log.noted


def of_dir(rule: str, effect: Effect, uri: str, name: str, bad: Bad) -> StartFinding:
    """Return the finding of a file of a log directory itself."""
    return StartFinding(rule, effect, uri, "", name, bad.reason, bad.line, bad.exception)


def whole(
    one: StartDir, log: StartLog, rule: str, effect: Effect, found: str, name: str = ""
) -> StartFinding:
    """Return the finding of a log that goes as a whole."""
    decision = LogDecision(
        one.uri, log, is_clean=True, is_needed=False, is_compacted=is_noted_compacted(log)
    )
    size, offsets, records = decision.lost()
    return StartFinding(
        rule,
        effect,
        one.uri,
        log.folder,
        name,
        found,
        size_bytes=size,
        offsets=offsets,
        records=records,
        files=(log.folder,),
    )
