"""Builds that are made once, and taken by every test that only needs one to begin with."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from kafka_segments.verbs.scan.summary import BuildSummary
from support.spark.stored_builds import build_few

Built = Callable[..., BuildSummary]


class ReadyBuild(NamedTuple):
    """Segments, the index files and the tables that a build made of them, and what it said."""

    logs: Path
    indexes: Path
    warehouse: Path
    summary: BuildSummary


def build_once(
    spark: SparkSession, logs: Path, folder: Path, *, build: Built = build_few
) -> ReadyBuild:
    """Build a log directory into ``folder``."""
    indexes, warehouse = folder / "indexes", folder / "warehouse"
    summary = build(spark, str(logs), str(warehouse), index_dir=str(indexes))
    return ReadyBuild(logs, indexes, warehouse, summary)


class LentBuild:
    """A build lent to one test after another; each finds it as it was made.

    Its tables name the folders of its segments and index files, so these stay where they are and
    are put back from a copy. Of the tables each test has a copy of its own.
    """

    def __init__(self, made: ReadyBuild, kept: Path) -> None:
        self.made = made
        self._kept = kept
        for folder in (made.logs, made.indexes):
            shutil.copytree(folder, kept / folder.name)

    def lend(self, warehouse: Path) -> ReadyBuild:
        """Put the files back and copy the tables to ``warehouse``, which there is not yet."""
        for folder in (self.made.logs, self.made.indexes):
            shutil.rmtree(folder)
            shutil.copytree(self._kept / folder.name, folder)
        shutil.copytree(self.made.warehouse, warehouse)
        return self.made._replace(warehouse=warehouse)
