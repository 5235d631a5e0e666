"""``cleaner --output prometheus``: figures of sound, damaged and half-known nodes."""

import shutil
from pathlib import Path

from support.verbs.figures import figures_of

CHECKPOINT = "cleaner-offset-checkpoint"
SIZES = ("cleaner_clean_bytes", "cleaner_cleanable_bytes", "cleaner_dirty_bytes")


def test_a_sound_node_has_its_logs_where_they_stand(node: Path) -> None:
    read = figures_of("cleaner", node)

    assert (read.exit_code, read.of("exit_status"), read.of("findings")) == (0, 0, 0)
    assert read.of("cleaner_runs") == 1
    assert read.of("cleaner_logs", "only the active segment is dirty")
    assert read.of("cleaner_logs", "not known") == 0
    assert None not in [read.of(name) for name in (*SIZES, "cleaner_dirty_ratio_max")]


def test_a_log_that_was_never_cleaned_is_dirty_as_a_whole(node: Path) -> None:
    (node / "a" / CHECKPOINT).unlink()

    read = figures_of("cleaner", node)

    assert read.of("cleaner_dirty_ratio_max") == 1
    assert read.of("cleaner_logs", "cleaned next")


def test_a_cleaner_that_ends_at_a_checkpoint_does_not_run(node: Path) -> None:
    (node / "a" / CHECKPOINT).write_text("0\n1\nt 0 99999999999999999999\n")

    read = figures_of("cleaner", node)

    assert (read.of("exit_status"), read.of("cleaner_runs")) == (1, 0)
    assert read.of("findings")


def test_a_checkpoint_that_cannot_be_read_leaves_no_sum(node: Path) -> None:
    (node / "a" / CHECKPOINT).write_text("1\n")

    read = figures_of("cleaner", node)

    assert read.of("exit_status") == 1
    assert read.of("unknowns")
    assert read.of("cleaner_logs", "not known")
    assert [read.of(name) for name in SIZES] == [None] * 3
    assert read.of("cleaner_dirty_ratio_max") is None


def test_without_the_metadata_log_no_absence_is_told(node: Path) -> None:
    shutil.rmtree(node / "a" / "__cluster_metadata-0")

    read = figures_of("cleaner", node)

    assert read.of("exit_status") == 1
    assert read.of("cleaner_runs") is None
    assert 0 not in read.values["cleaner_logs"].values()
    assert read.of("cleaner_unsure_logs")
