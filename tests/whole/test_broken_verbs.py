"""One file of a warehouse is broken, drawn: each verb gives its rows, or names table and step."""

import json
import random
import re
from collections.abc import Callable, Iterable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_segments.files.delta import health as delta_health
from support.spark.connect_client import Done, run_verb
from support.verbs.broken_warehouses import (
    KINDS,
    MORE_HARMS,
    Break,
    add_checkpoints,
    broken_copy,
    draw_break,
    tables_of,
)
from support.verbs.every_verb import CALLS, World

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]
ASKED = sorted(verb for verb, call in CALLS.items() if "{tables}" in call)
BREAKS_OF_A_VERB = 5
# A folder that is gone as a whole was moved away by a person: what is answered then is another
# test's.
BROKEN_KINDS = [kind for kind in KINDS if kind != "folder"]
NAMED = re.compile(r"table .+ is broken: .+\. (Move|Restore|`kafka-segments)|no table ")


class Asked:
    """A warehouse of which copies are broken and asked."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world, self._folder, self._copies = world, folder, 0
        self.sound = folder / "world" / "tables"
        add_checkpoints(self.sound, random.Random(str(folder.name)))

    def ask(self, verb: str, broken: Break | None = None) -> Done:
        """Run a verb on a copy of which something is broken."""
        self._copies += 1
        copy = self._folder / f"copy-{self._copies}"
        broken_copy(self.sound, copy, broken)
        words = [word.replace(str(self.sound), str(copy)) for word in self._world.call(verb)]
        return run_verb([*words, "--output", "json"])


def _tables_read_by(ask: Callable[[], Done]) -> tuple[Done, set[str]]:
    """Run a verb; return what it said, and the tables at whose logs it looked."""
    read: set[str] = set()
    look: Callable[..., Any] = delta_health._looked_at

    def looked_at(table: str, **more: Any) -> Any:
        read.add(table.rstrip("/").rpartition("/")[2])
        return look(table, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta_health, "_looked_at", looked_at)
        return ask(), read


def _answered(done: Done) -> tuple[int, int]:
    """Return the status of a verb, and the number of its rows."""
    return done.status, sum(1 for line in done.out.splitlines() if json.loads(line))


def wrong_answers(asked: Asked, verb: str, kinds: Iterable[str]) -> list[tuple[Break, Done]]:
    """Break a file of each kind; return what was answered by neither all rows nor its name."""
    draw, wrong = random.Random(verb), []
    asked.ask(verb)  # of two that work on disks, only the first finds what to do
    sound, read = _tables_read_by(lambda: asked.ask(verb))
    assert sound.status in (0, 1), sound
    tables = sorted(read.intersection(tables_of(asked.sound)))
    for kind in kinds:
        drawn = (
            draw_break(asked.sound, kind, table, draw, MORE_HARMS)
            for table in draw.sample(tables, len(tables))
        )
        broken = next(filter(None, drawn), None)
        if broken is None:
            continue
        said = asked.ask(verb, broken)
        is_named = said.status == 2 and NAMED.search(said.err) is not None
        # By a build that mended it; or the table tells no row, but how old the rows are.
        is_told = f"table {broken.table}: " in said.err or NAMED.search(said.err) is not None
        expected = (1 if said.status == 1 and is_told else sound.status, _answered(sound)[1])
        if not is_named and _answered(said) != expected:
            wrong.append((broken, said))
    return wrong


@pytest.fixture(scope="module")
def asked(
    spark: SparkSession, cluster: Path, synthetic: Path, tmp_path_factory: pytest.TempPathFactory
) -> Asked:
    folder = tmp_path_factory.mktemp("broken")
    (folder / "world").mkdir()
    return Asked(World(spark, cluster, synthetic, folder / "world"), folder)


@pytest.mark.parametrize("verb", ASKED)
def test_a_verb_gives_its_rows_or_says_what_is_broken(asked: Asked, verb: str) -> None:
    first = ASKED.index(verb) * BREAKS_OF_A_VERB

    kinds = islice(cycle(BROKEN_KINDS), first, first + BREAKS_OF_A_VERB)

    assert wrong_answers(asked, verb, kinds) == []
