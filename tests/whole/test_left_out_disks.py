"""Parts of a cluster's disks: no verb says of them what the whole denies, or passes over a thing.

Disks, partitions, replicas and internal topics are left out. ``LEFT_OUT_DISKS=30
LEFT_OUT_FROM=0`` draws others. A group fails over from and to the first ``LEFT_OUT_FAILOVERS=4``.
"""

import os
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.kafka.left_out_disks import (
    WHOLE,
    Answers,
    Rows,
    answers_of,
    contradictions,
    lay_out,
    rows_by_key,
)
from support.spark.connect_client import Done, run_verb

NOW_MS = 1_795_396_712_421  # 3 seconds behind the cluster's last answer
A_WHILE_AGO = NOW_MS - 11_000
MANY, FAILOVERS = 15, 4
_LOG = ("topic", "partition")
_OF_GROUP = ("group_id", *_LOG)
VERBS = {
    "lag": _OF_GROUP,
    f"lag --at {A_WHILE_AGO}": _OF_GROUP,
    "lag --share-groups": _OF_GROUP,
    "internals groups": _OF_GROUP,
    "internals transactions": (*_LOG, "producer_id", "producer_epoch", "first_offset"),
    "search offsets --time LATEST": _LOG,
    f"search offsets --time {A_WHILE_AGO}": _LOG,
    f"search restore --at {A_WHILE_AGO}": _LOG,
    "retention decide": ("broker_id", *_LOG, "base_offset"),
}
"""What is asked, and by what its rows are told apart."""
OF_LOGS = ("search", "retention")
"""Verbs whose rows are of the logs in the tables, each for itself."""
AS_OF_NOW = ("lag", "internals transactions", "retention")
FAILOVER = ("search", "failover", "--group", "old-readers", "--max-latency", "1m")


class Parts(NamedTuple):
    """Drawn parts of the cluster: what each lacks, and the options of verbs for their tables."""

    left_out: dict[str, list[str]]
    tables: list[str]
    now: list[str]


def _run(words: list[str]) -> Done:
    done = run_verb(words)
    assert done.status in (0, 1), done.err
    return done


@pytest.fixture(scope="module")
def parts(
    spark: SparkSession, cluster: Path, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> Parts:
    """The whole cluster and drawn parts of it, in one warehouse."""
    tmp_path = tmp_path_factory.mktemp("parts")
    begin = int(os.environ.get("LEFT_OUT_FROM", "0"))
    numbers = range(begin, begin + int(os.environ.get("LEFT_OUT_DISKS", MANY)))
    disks, tables = tmp_path / "disks", ["--warehouse", str(tmp_path / "tables")]
    left_out = lay_out(cluster / "disks", disks, f"{seed}", numbers)
    sources = [word for node in sorted(disks.iterdir()) for word in ("--source", str(node))]
    now = ["--now-ms", str(NOW_MS)]
    _run(["build", *sources, *tables, "--index-dir", str(tmp_path / "i"), "--internals", *now])
    return Parts(left_out, tables, now)


@pytest.mark.long
def test_nothing_is_said_of_a_part_that_the_whole_denies(parts: Parts) -> None:
    left_out, tables, now = parts
    found = []
    for verb, key in VERBS.items():
        at = now if verb.startswith(AS_OF_NOW) else []
        done = _run([*verb.split(), *tables, *at, "--output", "json"])
        answers = answers_of(done.out, done.err, key)
        said = contradictions(answers, left_out, is_of_logs=verb.startswith(OF_LOGS))
        found += [f"{verb}: {line}" for line in said]
    assert found == []


@pytest.mark.long
@pytest.mark.parametrize("way", ["from", "to"])
def test_a_group_goes_from_and_to_a_part_where_the_whole_says_or_it_is_not_known(
    parts: Parts, way: str
) -> None:
    many = int(os.environ.get("LEFT_OUT_FAILOVERS", FAILOVERS))
    left_out = dict(islice(parts.left_out.items(), 1 + many))
    rows: dict[str, Rows] = {}
    said: list[str] = []
    for name in left_out:
        of, to = (name, WHOLE) if way == "from" else (WHOLE, name)
        rows[name], lines = _failover(parts, of, to)
        said += [f"cluster {name}: {line}" for line in lines]

    assert rows[WHOLE]
    assert list(contradictions(Answers(rows, said), left_out, is_of_logs=False)) == []


def _failover(parts: Parts, of: str, to: str) -> tuple[Rows, list[str]]:
    """Let the group go from one cluster to another; return what is said, without the sum."""
    clusters = ["--cluster", of, "--to-cluster", to, "--to-warehouse", parts.tables[1]]
    done = run_verb([*FAILOVER, *clusters, *parts.tables, *parts.now, "--output", "json"])
    lines = [line for line in done.err.splitlines() if " partitions; in " not in line]
    if done.status == 2:  # of a cluster without offsets: refused
        assert "no segments of" in done.err, done.err
        return {}, [*lines, "not known"]
    assert done.status in (0, 1), done.err
    return rows_by_key(done.out.splitlines(), _LOG), lines
