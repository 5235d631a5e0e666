"""The questions of docs/cookbook.md, and the warehouse that the page's output comes from."""

import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from support.spark.stored_builds import build_few

PAGE = Path(__file__).resolve().parents[3] / "docs" / "cookbook.md"
FIRST_RUN_MS, NOW_MS = 1_794_900_000_000, 1_795_000_000_000
_QUESTION = re.compile(r"## (\d+\. [^\n]+)\n.*?```sql\n(.*?)```\n\n```\n(.*?)```\n", re.DOTALL)


class Question(NamedTuple):
    """A heading of the page, its query, and the output that stands below it."""

    title: str
    query: str
    output: str


def questions(page: str) -> list[Question]:
    """Read the questions of the page."""
    return [Question(*found) for found in _QUESTION.findall(page)]


def sample_warehouse(spark: SparkSession, broker: Path, folder: Path) -> str:
    """Build the broker's sample twice; before the second run files come, go and are damaged."""
    logs, warehouse = folder / "logs", str(folder / "warehouse")
    shutil.copytree(broker / "logs", logs)
    build_few(spark, str(logs), warehouse, now_ms=FIRST_RUN_MS)
    (logs / "ct-out-of-order-0" / f"{1574:020d}.log").unlink()
    damaged = logs / "ct-none-0" / f"{1597:020d}.log"
    with damaged.open("r+b") as log:
        log.seek(500_000)
        log.write(b"\0\0\0\0")
    empty = logs / "orders-0" / f"{0:020d}.log"
    empty.parent.mkdir()
    empty.touch()
    for changed in (damaged, empty):
        os.utime(changed, (NOW_MS // 1000, NOW_MS // 1000))
    build_few(spark, str(logs), warehouse, now_ms=NOW_MS)
    return warehouse
