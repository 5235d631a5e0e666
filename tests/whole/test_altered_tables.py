"""Tables that an administrator altered by Delta's own statements: each verb answers as before."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.spark.altered_tables import ALTERATIONS
from support.spark.connect_client import Done, run_verb
from support.verbs.broken_warehouses import tables_of
from support.verbs.every_verb import World

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]
ASKED = (
    *("audit", "internals read", "internals transactions", "lag", "migrate status"),
    *("retention decide", "retention plan", "search offsets", "sql", "validate"),
    *("build", "compact"),
)
"""Verbs that read and write the tables in different ways."""
SAID = {
    "widened types": "has features of Delta's that only Spark reads: what histories of",
    "optimized, vacuumed": ": rows may have been taken back by UPDATE in version ",
    "appends alone": " takes appends alone (delta.appendOnly), and this run replaces rows",
}
"""What a verb says of an alteration, in place of its answer or beside it."""


class Asked:
    """A warehouse of which each verb is asked on one copy, one verb after the other."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world, self._folder = world, folder
        self._sound = folder / "world" / "tables"
        self.as_made = self.answers(self.copy("as-made"))

    def copy(self, name: str) -> Path:
        """Return a copy of the tables."""
        return Path(shutil.copytree(self._sound, self._folder / name))

    def answers(self, tables: Path) -> dict[str, Done]:
        """Ask each verb about a copy of the tables."""
        return {verb: self._ask(verb, tables) for verb in ASKED}

    def _ask(self, verb: str, tables: Path) -> Done:
        words = [word.replace(str(self._sound), str(tables)) for word in self._world.call(verb)]
        return run_verb([*words, "--output", "json"])


@pytest.fixture(scope="module")
def asked(
    spark: SparkSession, cluster: Path, synthetic: Path, tmp_path_factory: pytest.TempPathFactory
) -> Asked:
    folder = tmp_path_factory.mktemp("altered")
    (folder / "world").mkdir()
    return Asked(World(spark, cluster, synthetic, folder / "world"), folder)


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_each_verb_answers_as_before_or_says_what_stands_against_it(
    asked: Asked, spark: SparkSession, alteration: str
) -> None:
    tables = asked.copy(alteration)
    for table in tables_of(tables):
        ALTERATIONS[alteration](spark, str(tables / table))

    words = SAID.get(alteration)
    answers = asked.answers(tables)

    told = [verb for verb in ASKED if words is not None and words in answers[verb].err]
    assert bool(told) == (words is not None)
    assert all(answers[verb].status in (1, 2) for verb in told)
    others = [verb for verb in ASKED if verb not in told]
    assert {verb: answers[verb].status for verb in others} == {
        verb: asked.as_made[verb].status for verb in others
    }
    if words is None:  # else a verb may have made a table, which `validate` has more to say of
        assert {verb: _count_rows(answers[verb]) for verb in others} == {
            verb: _count_rows(asked.as_made[verb]) for verb in others
        }


def _count_rows(done: Done) -> int:
    return done.out.count("\n")
