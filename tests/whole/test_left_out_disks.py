"""Parts of a cluster's disks: no verb says of them what the whole denies, or passes over a thing.

Disks, partitions, replicas and internal topics are left out. ``LEFT_OUT_DISKS=30
LEFT_OUT_FROM=0`` draws others.
"""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.kafka.left_out_disks import answers_of, contradictions, lay_out
from support.spark.connect_client import Done, run_verb

NOW_MS = 1_795_396_712_421  # 3 seconds behind the cluster's last answer
A_WHILE_AGO = NOW_MS - 11_000
MANY = 15
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


def _run(words: list[str]) -> Done:
    done = run_verb(words)
    assert done.status in (0, 1), done.err
    return done


@pytest.mark.long
def test_nothing_is_said_of_a_part_that_the_whole_denies(
    spark: SparkSession, cluster: Path, tmp_path: Path, seed: int
) -> None:
    begin = int(os.environ.get("LEFT_OUT_FROM", "0"))
    numbers = range(begin, begin + int(os.environ.get("LEFT_OUT_DISKS", MANY)))
    disks, tables = tmp_path / "disks", ["--warehouse", str(tmp_path / "tables")]
    left_out = lay_out(cluster / "disks", disks, f"{seed}", numbers)
    sources = [word for node in sorted(disks.iterdir()) for word in ("--source", str(node))]
    now = ["--now-ms", str(NOW_MS)]
    _run(["build", *sources, *tables, "--index-dir", str(tmp_path / "i"), "--internals", *now])

    found = []
    for verb, key in VERBS.items():
        at = now if verb.startswith(AS_OF_NOW) else []
        done = _run([*verb.split(), *tables, *at, "--output", "json"])
        answers = answers_of(done.out, done.err, key)
        said = contradictions(answers, left_out, is_of_logs=verb.startswith(OF_LOGS))
        found += [f"{verb}: {line}" for line in said]
    assert found == []
