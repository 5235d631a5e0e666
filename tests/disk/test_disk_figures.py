"""``disk --output prometheus``: figures of log directories, whole and half looked at."""

import math
import os
import shutil
from pathlib import Path

import pytest

from kafka_segments.console.prometheus import answering
from kafka_segments.verbs.find.disk import run
from kafka_segments.verbs.find.disk.decide.accounts import TableGrowth
from kafka_segments.verbs.find.disk.report import print_disk
from support.verbs.figures import figures_of

NAMES = ('x"} 1', "a b\tc\nd", "\\n", "\u202eback", "-rf")


def test_a_sound_node_is_accounted_for_to_the_byte(node: Path) -> None:
    read = figures_of("disk", node)

    whole = sum(path.lstat().st_blocks * 512 for path in (node, *node.rglob("*")))
    assert (read.exit_code, read.of("exit_status"), read.of("unknowns")) == (0, 0, 0)
    assert sum(size or 0 for size in read.values["disk_used_bytes"].values()) == whole
    assert read.of("disk_broker_running", f"{node}/a") == 0
    assert read.of("disk_filesystem_bytes", f"{node}/b") == shutil.disk_usage(node).total
    of_topics = read.values["disk_topic_used_bytes"]
    assert any("orders" in labels for labels in of_topics)
    assert not [labels for labels in of_topics if None in (of_topics[labels],)]
    spans = {read.of("disk_full_seconds", f"{node}/a", span) for span in ("hour", "day")}
    assert all(span is not None and span > 0 for span in spans)


def test_a_disk_that_gets_nothing_is_never_full(node: Path) -> None:
    for path in node.rglob("*.log"):
        os.utime(path, (1, 1))

    read = figures_of("disk", node, "--now-ms", 1_795_000_000_000)

    assert set(read.values["disk_full_seconds"].values()) == {math.inf}
    assert set(read.values["disk_written_bytes"].values()) == {0}


def test_a_folder_that_waits_for_a_person_is_counted(node: Path) -> None:
    log = next(node.glob("b/orders-?"))
    shutil.copytree(log, node / "b" / "gone-0")

    read = figures_of("disk", node)

    assert read.of("exit_status") == 1
    found = {labels: n for labels, n in read.values["disk_folders"].items() if n}
    assert sum(n or 0 for n in found.values()) == read.of("findings")


def test_where_not_all_could_be_looked_at_sums_are_not_known(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = run.walk_disk

    def broken(sources: tuple[str, ...]) -> object:
        for folder in walk(sources):
            is_log = folder.root.endswith("/b") and folder.path.startswith("orders-")
            yield folder._replace(problem="Input/output error") if is_log else folder

    monkeypatch.setattr(run, "walk_disk", broken)

    read = figures_of("disk", node / "a", node / "b")

    assert read.of("exit_status") == 1
    assert read.of("unknowns")
    of_dir: dict[str, set[bool]] = {"a": set(), "b": set()}
    for labels, size in read.values["disk_used_bytes"].items():
        name = next(one for one in labels if one in (f"{node}/a", f"{node}/b"))
        of_dir[name[-1]].add(size is None)
    assert of_dir == {"a": {False}, "b": {True}}
    assert set(read.values["disk_full_seconds"].values()) == {None}
    assert read.of("disk_filesystem_bytes", f"{node}/b")


def test_a_disk_whose_size_is_not_told_is_not_known(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: str) -> object:
        raise PermissionError

    monkeypatch.setattr(run, "disk_space", refused)

    read = figures_of("disk", node)

    assert read.of("exit_status") == 1
    assert set(read.values["disk_filesystem_free_bytes"].values()) == {None}
    assert set(read.values["disk_full_seconds"].values()) == {None}


def test_what_retention_has_not_decided_is_one_thing_that_is_not_known() -> None:
    use = run.DiskUse(of_tables=TableGrowth("w", {"/d": 1}, {}, None, [], [], None))

    with answering() as answer:
        assert print_disk(use, "prometheus", rows="kinds") == 1

    assert (answer.findings, answer.unknowns) == (1, 1)


def test_hostile_names_of_topics_are_labels(node: Path) -> None:
    for name in (*NAMES, os.fsdecode(b"\xff")):
        (node / "b" / f"{name}-0").mkdir()

    read = figures_of("disk", node)

    told = {name for labels in read.values["disk_topic_used_bytes"] for name in labels}
    assert {*NAMES, "\\xff"} <= told
