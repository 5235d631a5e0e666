"""A killed broker's disk: a start with a kit against a start without, side by side."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_segments.cli import cli
from kafka_segments.errors import SetAsideError
from kafka_segments.files.storage.folder_lock import held_lock
from kafka_segments.kafka.text.checkpoints import LOCK
from kafka_segments.verbs.change.recovery.forecast.run import ForecastOptions, run_forecast
from support.kafka.crashed_broker import (
    MEGABYTES,
    REFUSED,
    answers,
    crash,
    damage,
    errors,
    produced,
    recovered,
    started,
)
from support.kafka.kafka_referee import RefereeError

pytestmark = [pytest.mark.slow, pytest.mark.referee]
TOPICS = list(MEGABYTES)


def _run(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["recovery", *map(str, arguments)])
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crashed")
    damage(crash(folder, MEGABYTES))
    return folder / "logs"


def test_a_start_with_a_kit_recovers_next_to_nothing_and_ends_in_the_same_state(
    disk: Path, tmp_path: Path
) -> None:
    plain, ours, kit = tmp_path / "plain", tmp_path / "ours", tmp_path / "kit"
    for folder in (plain, ours):
        shutil.copytree(disk, folder / "logs")
    with started(plain) as broker:
        without = answers(broker, TOPICS)
        read_without = recovered(broker)

    forecast = _forecast_with_kit(ours / "logs")
    made = _run("kit", "--source", ours / "logs", "--out", kit)
    applied = _run("apply", kit, "--execute")
    with started(ours) as broker:
        refused = _run("rollback", kit, "--execute")
        with_kit = answers(broker, TOPICS)
        read_with = recovered(broker)
        counts = [produced(broker, TOPICS)]
        assert errors(broker) == []
    assert made[0] == applied[0] == 1, (made, applied)
    assert all(f"{topic}-0: refused; segment" in made[1] for topic in REFUSED)
    assert "with a torn tail to cut off: 3" in made[1]
    assert refused[1].count("its .lock is held: stop its broker first") == 6
    for name, answer in without.items():
        assert with_kit[name] == answer, name
    assert len(read_without["long"]) >= 20
    empty = {topic: [without_end] for topic, without_end in _ends(without).items()}
    assert read_with == read_without | {
        topic: bases for topic, bases in empty.items() if topic not in REFUSED
    } | {"__transaction_state": read_with["__transaction_state"]}
    assert forecast == {topic: len(bases) for topic, bases in read_with.items()}

    status, told = _run("rollback", kit, "--execute", "--output", "json")
    assert (status, told.count('"status": "refused"')) == (1, len(TOPICS) + 1), told
    for _ in ("after an unclean stop", "after a clean stop"):
        with started(ours) as broker:
            counts.append(produced(broker, TOPICS))
            assert errors(broker) == []
            broker.stop_broker()
    assert counts[1:] == [[count + 1 for count in before] for before in counts[:-1]]


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory of a broker that was killed with one topic of a few segments."""
    return crash(tmp_path_factory.mktemp("small"), {"t": 3})


@pytest.mark.long
def test_a_broker_does_not_start_while_our_lock_is_held_and_takes_it_after(
    crashed: Path, tmp_path: Path
) -> None:
    log_dir, lock = tmp_path / "logs", tmp_path / "logs" / LOCK
    shutil.copytree(crashed, log_dir)
    lock.unlink()

    with held_lock(lock, creates=True), pytest.raises(RefereeError), started(tmp_path):
        pass
    said = (tmp_path / "server.log").read_text()
    (tmp_path / "server.log").unlink()
    with started(tmp_path) as broker:
        assert errors(broker) == []
        with pytest.raises(SetAsideError, match="is held"), held_lock(lock):
            pass

    assert "Failed to acquire lock on file .lock in" in said


def _forecast_with_kit(log_dir: Path) -> dict[str, int]:
    """Return how many segments of each topic a start recovers after a kit, as forecast."""
    options = ForecastOptions(threads=(1,), sources=(str(log_dir),), is_full=True)
    return {
        log.topic: log.kit_work.recovered_segments
        for _, log in run_forecast(options).logs
        if log.kit_work.recovered_segments
    }


def _ends(found: dict[str, object]) -> dict[str, int]:
    offsets = found["offsets"]
    assert isinstance(offsets, dict)
    return {topic: offsets[f"{topic}-0"][1][0] for topic in TOPICS}
