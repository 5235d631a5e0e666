"""Every verb with a call that it answers: disks of a cluster, its tables, plans and a kit."""

import shlex
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import click
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from kafka_segments.engine.tables.catalog import RETENTION_PLANS
from support.spark.connect_client import run_verb
from support.spark.stored_builds import rows_few

CALLS = {
    "audit": "--source {node} {tables}",
    "backup verify": "--backup {node} --against n2={other} {tables}",
    "build": "--source {node} {tables} --index-dir {folder}/indexes --full",
    "cleaner": "{node}",
    "compact": "--source {node} {tables} --index-dir {folder}/indexes --dry-run",
    "disk": "{node}",
    "divergence compare": "--copy n1={node} --copy n2={other} {tables}",
    "divergence elect": "--copy n1={node} --copy n2={other} --copy n3={third}",
    "divergence mirror": "--source {node} --mirror {other}",
    "divergence repair": "--copy n1={node} --copy n2={other} --log orders-0 --out {new}",
    "forensics": "--source {node} {tables}",
    "internals changed": "{tables}",
    "internals groups": "{tables}",
    "internals read": "--source {node} {tables}",
    "internals tier": "{tables}",
    "internals transactions": "{tables}",
    "lag": "{tables}",
    "latency": "{tables}",
    "migrate apply": "{tables} --plan m",
    "migrate inventory": "{tables}",
    "migrate plan": "--source {old} {tables} --dry-run",
    "migrate rollback": "{tables} --plan m",
    "migrate stage": "{tables} --plan m",
    "migrate status": "{tables} --plan m",
    "migrate verify": "{tables} --plan m",
    "records": "{node} --key none",
    "recovery apply": "{kit}",
    "recovery forecast": "{tables}",
    "recovery kit": "--source {node} --out {new}",
    "recovery rollback": "{kit}",
    "report": "{tables} --out {folder}/page.html",
    "retention apply": "{tables} --plan {plan}",
    "retention decide": "{tables}",
    "retention explain": "orders-0 {tables}",
    "retention plan": "{tables} --set retention_ms=1 --dry-run",
    "retention rollback": "{tables} --plan {plan}",
    "roll": "{tables}",
    "search bootstrap": "{tables} --last 1h",
    "search failover": "{tables} --group by-hand --max-latency 1m --to-warehouse {folder}/tables",
    "search offsets": "{tables} --time LATEST",
    "search restore": "{tables} --at now",
    "sql": "'SELECT * FROM segments' {tables}",
    "triage": "{node}",
    "validate": "{tables}",
}
"""What is typed behind a verb's name; none has to be called after another."""


class World:
    """Where the calls find what they name; each takes a folder of its own for what is new."""

    def __init__(self, spark: SparkSession, cluster: Path, synthetic: Path, folder: Path) -> None:
        self._new = count()
        disks, old = folder / "disks", folder / "old"
        shutil.copytree(cluster / "disks", disks)
        shutil.copytree(synthetic / "v0-v1-v2-multi-segment" / "t-0", old / "t-0")
        self._places = {
            "folder": str(folder),
            "tables": f"--warehouse {folder}/tables",
            **{name: f"{disks}/node-{n}" for n, name in enumerate(("node", "other", "third"), 1)},
            "old": str(old),
            "kit": str(folder / "kit"),
        }
        for words in (
            "build --source {node} --source {old} {tables} --index-dir {folder}/indexes --quiet",
            "internals read --source {node} {tables} --quiet",
            "retention plan {tables} --set retention_ms=1 --quiet",
            "migrate plan --source {old} {tables} --plan m --quiet",
            "recovery kit --source {node} --out {kit} --quiet",
        ):
            done = run_verb(self._words(words))
            assert done.status in (0, 1), done
        self._places["plan"] = rows_few(spark, f"{folder}/tables", RETENTION_PLANS)[0]["plan_id"]

    def call(self, verb: str) -> list[str]:
        """Return the words of a verb's call."""
        return [*verb.split(), *self._words(CALLS[verb])]

    def _words(self, line: str) -> list[str]:
        new = f"{self._places['folder']}/new-{next(self._new)}"
        return shlex.split(line.format(**self._places, new=new))


def every_verb() -> Iterator[str]:
    """Give the words of every verb that click knows."""

    def walk(command: click.Command, words: tuple[str, ...]) -> Iterator[str]:
        if isinstance(command, click.Group):
            for name, verb in command.commands.items():
                yield from walk(verb, (*words, name))
        else:
            yield " ".join(words)

    yield from walk(cli, ())
