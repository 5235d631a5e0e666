"""The options of a build. They are checked before anything is changed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kafka_segments.engine.derived.topic_sizes import IndexSizes, TopicSizes, recovery_of
from kafka_segments.engine.sources.missing import MOST_VANISHED
from kafka_segments.errors import UsageError
from kafka_segments.files.changes.index_files import IndexOutput
from kafka_segments.files.storage.stores import by_usual_scheme
from kafka_segments.files.storage.uris import folders_below, join_uri, last_component, lies_in
from kafka_segments.kafka.broker_rules.versions import DEFAULT_VERSION, Version
from kafka_segments.kafka.index.formats.by_name import KAFKAS_OWN
from kafka_segments.kafka.index.formats.index_format import IndexFormat
from kafka_segments.kafka.index.log.loading import DEFAULT_EXPIRATION_MS, RecoveryMode
from kafka_segments.kafka.index.segment.recovery_options import INDEX, RecoveryOptions
from kafka_segments.kafka.text.names import parse_partition_folder
from kafka_segments.kafka.tier.tiered_names import tiered_folder_of
from kafka_segments.verbs.scan.decide.unchanged import OptionsInWords


@dataclass(frozen=True)
class BuildOptions:
    """What is built of which sources. URIs are absolute; ``now_ms`` is the run's clock.

    ``is_first_look``: segments are read as a whole only where their index files do not tell.
    ``most_vanished``: percent of the segments known below a source that may be gone with their
    whole logs; where more are, the build stops.
    ``sizes``: the index settings of each topic; None: those of ``recovery`` hold for all.
    ``makes_anew``: somebody left other rows in the tables, or may have: all segments are read, and
    no row below the sources stays that is not made of them, or of a segment that is gone.
    ``kafka_version``: whose recovery it is. From 2.0 on all write the same bytes.
    ``has_record_sizes``: each record is decoded for the size of a segment's largest.

    Raises:
        UsageError: sources that overlap, a source and a target of which one lies in the other, or
            a first look with options that need every segment read.
    """

    sources: tuple[str, ...]
    recovery: RecoveryOptions
    now_ms: int
    index_dir: str | None = None
    in_place: bool = False
    index_format: IndexFormat = KAFKAS_OWN
    mode: RecoveryMode = RecoveryMode.SEGMENT
    producer_id_expiration_ms: int = DEFAULT_EXPIRATION_MS
    set_aside: str | None = None
    cluster: str | None = None
    broker_id: int | None = None
    full: bool = False
    follow_links: bool = False
    is_first_look: bool = False
    most_vanished: int = MOST_VANISHED
    sizes: TopicSizes | None = None
    kafka_version: Version = DEFAULT_VERSION
    has_record_sizes: bool = False
    makes_anew: bool = False

    def __post_init__(self) -> None:
        if not self.sources:
            raise UsageError("no --source given")
        if self.in_place and self.index_dir is not None:
            raise UsageError("--in-place writes beside the segments: leave --index-dir out")
        self._check_format()
        self._check_first_look()
        for source in self.sources:
            for other in self.sources:
                if source != other and _lies_in(other, source):
                    raise UsageError(f"sources overlap: {other} lies in {source}")
        if len(set(self.sources)) < len(self.sources):
            raise UsageError("a source is given twice")
        self.check_target("--index-dir", self.index_dir)
        self.check_target("--set-aside", self.set_aside)
        names = Counter(last_component(source) for source in self.sources)
        for name, count in names.items():
            if count > 1 and self.index_dir is not None:
                raise UsageError(f"{count} sources end in {name}: their index files would mix")

    def check_target(self, option: str, target: str | None) -> None:
        """Refuse a folder to be written that lies in a source, or the other way round.

        Raises:
            UsageError: names both.
        """
        for source in self.sources:
            if target is not None and _lies_in(target, source):
                raise UsageError(f"{option} {target} lies in the source {source}")
            if target is not None and _lies_in(source, target):
                raise UsageError(f"the source {source} lies in {option} {target}")

    def _check_format(self) -> None:
        """Refuse another format beside the segments: a broker would take the files for its own."""
        name = self.index_format.name
        if self.index_format != KAFKAS_OWN and self.index_dir is None:
            raise UsageError(
                f"--index-format {name} needs --index-dir: a broker would take such files beside"
                " its segments for its own, and the tables hold Kafka's entries in any format"
            )

    def _check_first_look(self) -> None:
        """Refuse what a first look cannot do: it reads no segment as a whole if it need not."""
        needs_all = {
            "--index-dir": self.index_dir is not None,
            "--in-place": self.in_place,
            "--digests": self.recovery.digest_bits > 0,
            "--record-sizes": self.has_record_sizes,
            f"--recovery {self.mode.value}": self.mode != RecoveryMode.SEGMENT,
        }
        for option, is_given in needs_all.items():
            if self.is_first_look and is_given:
                raise UsageError(
                    f"{option} needs every batch, and --check index reads few of them: leave one of"
                    " the two out"
                )

    @property
    def finishes_swaps(self) -> bool:
        """Whether the segments are those of a start, which finishes ``.swap`` files first.

        Loads take these. Index files beside the segments fit what lies there.
        """
        return self.mode != RecoveryMode.SEGMENT and not self.in_place

    @property
    def check(self) -> str:
        """How segments are checked, in the word of the option."""
        return INDEX if self.is_first_look else self.recovery.checked

    def sizes_of(self, cluster: str, broker_id: int, topic: str) -> IndexSizes:
        """Return the index settings of a topic on a broker."""
        recovery = recovery_of(self.recovery, self.sizes, cluster, broker_id, topic)
        return IndexSizes(recovery.index_interval_bytes, recovery.segment_index_bytes)

    @property
    def fingerprint_around(self) -> tuple[str, str]:
        """Return what a fingerprint says of the options before and after the index settings.

        The result of a scan depends on them. `roll` finds the interval between
        (``with_built_interval``).
        """
        target = "in-place" if self.in_place else self.index_dir or "tables"
        digests = ("digests",) if self.recovery.digest_bits else ()
        records = ("record-sizes",) if self.has_record_sizes else ()
        return str(self.index_format), "/".join((self.check, self.mode, target, *digests, *records))

    @property
    def fingerprint_in_words(self) -> OptionsInWords:
        """Return what a fingerprint says of the options, of all segments or of a topic's."""
        if self.sizes is not None and self.sizes.vary:
            return self.fingerprint_of_options
        return self.fingerprint_of_options("", -1, "")

    def fingerprint_of_options(self, cluster: str, broker_id: int, topic: str) -> str:
        """Return what a fingerprint says of the options for a segment of a topic."""
        before, after = self.fingerprint_around
        return f"{before}/{self.sizes_of(cluster, broker_id, topic).text}/{after}"

    def scan_recovery(self) -> RecoveryOptions:
        """Return how segments are recovered: on their own, or as parts of a load."""
        return replace(
            self.recovery,
            is_load=self.mode != RecoveryMode.SEGMENT,
            finds_indexes=self.mode == RecoveryMode.LOADER_UNCLEAN,
        )

    @property
    def writes_indexes(self) -> bool:
        """Whether index files are written at all."""
        return self.in_place or self.index_dir is not None

    def index_output(self, warehouse: str, run_id: str) -> IndexOutput | None:
        """Return where index files go; None if none are written.

        Those that they replace go to ``set_aside``, or below the warehouse.
        """
        if not self.writes_indexes:
            return None
        return IndexOutput(
            index_dir=self.index_dir,
            set_aside=join_uri(self.set_aside or join_uri(warehouse, "_set_aside"), run_id),
            folders=folders_below(self.sources),
        )

    def described(self) -> dict[str, Any]:
        """Return the options as table ``runs`` keeps them, beside the warehouse."""
        return {
            "index_dir": self.index_dir,
            "in_place": self.in_place,
            "index_format": str(self.index_format),
            "index_interval_bytes": self.recovery.index_interval_bytes,
            "segment_index_bytes": self.recovery.segment_index_bytes,
            "recovery": self.mode.value,
            "kafka_version": ".".join(map(str, self.kafka_version)),
            "producer_id_expiration_ms": self.producer_id_expiration_ms,
            "check": self.check,
            "digests": self.recovery.digest_bits > 0,
            "record_sizes": self.has_record_sizes,
            "full": self.full,
            "follow_links": self.follow_links,
        }


def single_logs(sources: Iterable[str]) -> tuple[tuple[str, str | None, int], ...]:
    """Return log directory, topic and partition of each source named as a partition's folder.

    A log directory may have such a name, too. A tiered one has one topic, which is not named:
    the name of its folder may begin with the end of a prefix.
    """
    found: list[tuple[str, str | None, int]] = []
    for source in sources:
        above = source.rpartition("/")[0]
        folder, tiered = parse_partition_folder(last_component(source)), tiered_folder_of(source)
        if folder is not None:
            found.append((above, folder.topic, folder.partition))
        elif tiered is not None:
            found.append((above, None, tiered.partition))
    return tuple(found)


def _lies_in(path: str, folder: str) -> bool:
    return lies_in(by_usual_scheme(path), by_usual_scheme(folder))
