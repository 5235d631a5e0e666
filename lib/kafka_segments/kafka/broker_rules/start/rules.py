"""The table of a broker's start: in which state a file ends the broker, costs a directory or a log.

``effects`` says how a broker fails; the table holds what each state of a file throws or does.
Whatever is not in the table is read over: 0 bytes of a checkpoint are a checkpoint without entries,
``.snapshot`` files that cannot be read are made anew, and a marker counts by its name, whatever it
holds.

Source: as named in each row; Kafka 4.3.1, asked by 202 cells of a broker's directories.
"""

from typing import NamedTuple

from kafka_segments.kafka.broker_rules.start.effects import Effect, StartRule
from kafka_segments.kafka.broker_rules.start.rules_of_logs import LOG_RULES
from kafka_segments.kafka.broker_rules.start.rules_of_node import NODE_RULES

RULES: dict[str, StartRule] = {**NODE_RULES, **LOG_RULES}
"""The rows by their short names."""


class StartFinding(NamedTuple):
    """A state of the table, found; what it costs.

    Attributes:
        rule: Its name in ``RULES``.
        effect: What the start does.
        log_dir: Where, as a path or URI.
        folder: The partition's folder; empty: a file of the log directory itself.
        file: The file's name; empty: the folder itself.
        found: What was found there.
        line: Of the file, from 1 on; None: no single one.
        exception: Kafka's class, without its package; empty: none is thrown.
        size_bytes: How many bytes of records go or are not served; None: not known.
        offsets: How many offsets; None: not known.
        records: How many records; None: not known.
        files: The files and folders that go.
    """

    rule: str
    effect: Effect
    log_dir: str
    folder: str = ""
    file: str = ""
    found: str = ""
    line: int | None = None
    exception: str = ""
    size_bytes: int | None = 0
    offsets: int | None = 0
    records: int | None = 0
    files: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Return the file's path below the log directory."""
        return "/".join(filter(None, (self.folder, self.file)))

    @property
    def step(self) -> str:
        """Return what to do before the start."""
        return RULES[self.rule].step
