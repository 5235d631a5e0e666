"""A file of a warehouse is broken, drawn by its kind: all rows, or the table and a step."""

import json
import random
import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from kafka_segments.files.delta.health import OF_BUILD
from support.spark.connect_client import Done, run_verb
from support.spark.ready_builds import ReadyBuild
from support.verbs.broken_warehouses import KINDS, add_checkpoints, broken_copy, draw_break

SEED = 20261128
NAMED = re.compile(r"table .+ is broken: .+\. (Move|Restore|`kafka-segments)|no table ")


def _all_of(table: str, warehouse: Path) -> Done:
    asked = ["sql", f"SELECT * FROM {table}", "--warehouse", str(warehouse), "--output", "json"]
    return run_verb(asked)


def _rows(done: Done) -> list[str]:
    rows = (json.loads(line) for line in done.out.splitlines())
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def _is_whole(said: Done, sound: Done) -> bool:
    """Tell whether all rows of a table were given, or what is broken was named."""
    if said.status != 0:
        return said.status == 2 and NAMED.search(said.err) is not None
    return _rows(said) == _rows(sound)


@pytest.mark.long
def test_a_table_gives_all_its_rows_or_says_what_is_broken(
    broker_build: ReadyBuild, tmp_path: Path
) -> None:
    sound, draw, wrong = tmp_path / "sound", random.Random(SEED), []
    shutil.copytree(broker_build.warehouse, sound)
    add_checkpoints(sound, draw)
    whole = cache(lambda table: _all_of(table, sound))
    for kind in KINDS:
        tables = draw.sample(OF_BUILD, len(OF_BUILD))
        each = (draw_break(sound, kind, table, draw) for table in tables)
        drawn = [broken for broken in each if broken is not None]
        assert drawn, kind
        for broken in drawn:
            copy = broken_copy(sound, tmp_path / f"{kind}-{broken.table}".replace(" ", "-"), broken)
            said = _all_of(broken.table, copy)
            if not _is_whole(said, whole(broken.table)):
                wrong.append((broken, said))

    assert wrong == []
