"""The options of the verbs that hold copies against each other."""

import uuid
from dataclasses import dataclass, field

from kafka_segments.divergence.decide.copies import Match
from kafka_segments.errors import UsageError


@dataclass(frozen=True)
class CopyOptions:
    """What is compared. URIs are absolute; ``now_ms`` is the run's clock.

    Attributes:
        copies: names and URIs; a name can have several URIs, such as a broker's log directories.
        now_ms: the clock.
        warehouse: URI of the tables; None: the result is kept nowhere.
        check_crc: every byte is read and checksums are verified; else headers alone are read.
        check_keys: what a copy lacks below the cleaner's offset is looked for by keys.
        anchor: logs that this copy lacks are not compared; None: all are that two copies hold.
        match: which logs are one.
        digests: URIs of warehouses: files that they know, and that have not changed, are not read.
        run_id: names the run.
        least: how many copies there must be.

    Raises:
        UsageError: fewer copies, or a URI that two copies have.
    """

    copies: tuple[tuple[str, str], ...]
    now_ms: int
    warehouse: str | None = None
    check_crc: bool = True
    check_keys: bool = False
    anchor: str | None = None
    match: Match = Match.BOTH
    digests: tuple[str, ...] = ()
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    least: int = 2

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
