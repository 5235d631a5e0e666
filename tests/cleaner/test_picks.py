"""Drawn compacted logs: what Kafka's manager of the cleaner makes of each, and which is next."""

from pathlib import Path

import pytest

from kafka_segments.files.folders.source_folder import entries_of
from kafka_segments.files.node.start_reader import offsets_of, read_start_dir
from kafka_segments.kafka.broker_rules.cleaner.log_cleaner import (
    Cleanable,
    CleanerConfig,
    cleanable,
    next_cleaned,
)
from kafka_segments.verbs.find.cleaner.configs import Levels, cleaner_config
from kafka_segments.verbs.find.cleaner.log_facts import read_log
from support.kafka.kafka_referee import Answer, Referee

NOW_MS = 1_700_000_000_000
LOGS = 25


def _found(log_dir: Path, logs: Answer) -> dict[str, tuple[Cleanable, CleanerConfig]]:
    """Return what is made of each log from its files, by topic."""
    uri = str(log_dir)
    noted = offsets_of(read_start_dir(uri, entries_of(uri, ""), is_clean=False))
    found = {}
    for topic, drawn in logs.items():
        config, folder = cleaner_config(Levels({}, ()), drawn["config"]), f"{topic}-0"
        log = read_log(uri, folder, entries_of(uri, folder), noted[topic, 0], config)
        assert [one.base_offset for one in log.segments] == drawn["bases"]
        found[topic] = (cleanable(log, config, now_ms=NOW_MS), config)
    return found


@pytest.mark.parametrize("draw", range(4))
def test_each_log_is_as_the_cleaners_manager_sees_it(
    referee: Referee, tmp_path: Path, seed: int, draw: int
) -> None:
    answer = referee.pick_logs_to_clean(tmp_path, seed=seed + draw, logs=LOGS, now_ms=NOW_MS)

    found = _found(tmp_path, answer["logs"])

    names = ("first_dirty", "until", "clean_bytes", "cleanable_bytes", "overdue_ms")
    for topic, drawn in answer["logs"].items():
        told = {name: getattr(found[topic][0], name) for name in names}
        assert told == {name: drawn[name] for name in names}, (topic, drawn)


@pytest.mark.parametrize("draw", range(4, 6))
def test_logs_are_cleaned_in_the_order_in_which_the_manager_takes_them(
    referee: Referee, tmp_path: Path, seed: int, draw: int
) -> None:
    answer = referee.pick_logs_to_clean(tmp_path, seed=seed + draw, logs=LOGS, now_ms=NOW_MS)

    left = _found(tmp_path, answer["logs"])
    for topic, ratio in answer["picks"]:
        assert topic in next_cleaned(left)
        assert left.pop(topic)[0].ratio == pytest.approx(ratio)
    assert not next_cleaned(left)
