"""The options of the verbs that hold copies against each other."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from kafka_segments.engine.tables.catalog import OFFSET_RANGES
from kafka_segments.errors import UsageError
from kafka_segments.files.delta.health import version_if_there
from kafka_segments.files.storage.typed_uris import absolute_uri
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.verbs.copies.divergence.decide.copies import Match
from kafka_segments.verbs.copies.divergence.policies.cleanup import CleanupPolicies


@dataclass(frozen=True)
class CopyOptions:
    """Which copies are compared, and how. URIs are absolute.

    Attributes:
        copies: names and URIs; a name can have several URIs, such as a broker's log directories.
        now_ms: the clock, in ms since 1970.
        check_crc: read every byte and verify checksums; without it only headers are read.
        check_keys: look by keys for what a copy lacks below the cleaner's offset.
        anchor: compare only logs that this copy holds; None: all logs that two copies hold.
        match: which logs count as the same.
        digests: URIs of warehouses; files that they know and that have not changed are not read.
        run_id: names the run.
        least: how many copies there must be.
        policies: what is known of topics' cleanup.policy.

    Raises:
        UsageError: there are fewer copies, or two copies have the same URI.
    """

    copies: tuple[tuple[str, str], ...]
    now_ms: int
    check_crc: bool = True
    check_keys: bool = False
    anchor: str | None = None
    match: Match = Match.BOTH
    digests: tuple[str, ...] = ()
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    least: int = 2
    policies: CleanupPolicies = field(default_factory=CleanupPolicies.of_nothing)

    def __post_init__(self) -> None:
        names = {name for name, _ in self.copies}
        if len(names) < self.least:
            found = ", ".join(sorted(names)) or "none"
            raise UsageError(
                f"two copies or more are compared, found {found}: give --copy NAME=URI for each"
            )
        sources = [source for _, source in self.copies]
        for source in sources:
            if sources.count(source) > 1:
                raise UsageError(f"{source} is given as two copies: leave one")


def given_digests(warehouses: Iterable[str], *, own: str | None) -> tuple[str, ...]:
    """Return the URIs of the warehouses whose digests are asked for.

    ``own``: the URI of the run's own, which may have none yet, as in the first of many runs.
    """
    return tuple(
        uri
        for uri in map(absolute_uri, warehouses)
        if uri != own or version_if_there(join_uri(uri, OFFSET_RANGES.name)) is not None
    )
