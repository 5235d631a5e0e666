"""Figures of ``--output prometheus``, read by the library's own parser, and the rules of all."""

import re
from dataclasses import dataclass

from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from kafka_segments.cli import cli

_NAME = re.compile(r"kafka_segments_[a-z][a-z_]*[a-z]")
_NO_BASE_UNIT = re.compile(r"_(ms|millis|minutes|hours|days|kib|mib|gib|percent|total)(_|$)")
_NOT_KNOWN = "_not_known"


@dataclass
class Figures:
    """What a verb printed: its values by metric and labels; None: it says that it is not known."""

    exit_code: int
    stderr: str
    values: dict[str, dict[tuple[str, ...], float | None]]

    def of(self, metric: str, *labels: str) -> float | None:
        """Return the figure whose labels have these values, besides its source."""
        found = [value for names, value in self.values[metric].items() if set(labels) <= set(names)]
        assert len(found) == 1, (metric, labels, self.values[metric])
        return found[0]


def figures_of(*words: object) -> Figures:
    """Call a verb, hold what it prints to the rules, and return it."""
    done = CliRunner().invoke(cli, [*map(str, words), "--output", "prometheus"])
    return Figures(done.exit_code, done.stderr, read_figures(done.stdout))


def read_figures(text: str) -> dict[str, dict[tuple[str, ...], float | None]]:
    """Read the text format; each metric says of each of its labels whether it has a value."""
    families = {one.name: one for one in text_string_to_metric_families(text)}
    for name, family in families.items():
        assert family.type == "gauge"
        assert family.documentation
        assert _NAME.fullmatch(name)
        assert not _NO_BASE_UNIT.search(name)
        assert len({frozenset(sample.labels) for sample in family.samples}) <= 1
    read: dict[str, dict[tuple[str, ...], float | None]] = {}
    for name, family in families.items():
        if name.endswith(_NOT_KNOWN):
            assert name.removesuffix(_NOT_KNOWN) in families
            continue
        known = {tuple(one.labels.values()): one.value for one in family.samples}
        unknown = families[f"{name}{_NOT_KNOWN}"].samples
        assert len(known) == len(family.samples)
        of_labels = {tuple(one.labels.values()): one.value for one in unknown}
        assert len(of_labels) == len(unknown)
        assert set(of_labels.values()) <= {0, 1}
        assert known.keys() == {labels for labels, value in of_labels.items() if not value}
        short = name.removeprefix("kafka_segments_")
        read[short] = {labels: known.get(labels) for labels in of_labels}
    return read
