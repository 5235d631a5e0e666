"""What is forecast of a killed broker, against what a real one logs at its next start."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from kafka_segments.verbs.change.recovery.forecast.decide.forecasts import DirForecast
from kafka_segments.verbs.change.recovery.forecast.run import (
    Forecast,
    ForecastOptions,
    run_forecast,
)
from kafka_segments.verbs.find.disk.run import DiskOptions, run_disk
from kafka_segments.verbs.find.triage.decide import Step
from kafka_segments.verbs.find.triage.run import TriageOptions, run_triage
from support.kafka.killed_broker import Load, Start, kill_under_load, start_copy, started

pytestmark = pytest.mark.slow
WRITTEN_BYTES = 40_000_000
TORN = ("plain-0", 61)
START = Step("start the broker")


def _forecast(log_dir: Path, folder: Path, *, threads: int) -> Forecast:
    return run_forecast(
        ForecastOptions(threads=(threads,), sources=(str(log_dir),), calibrates_in=folder)
    )


def _du(folder: Path) -> int:
    done = subprocess.run(["du", "-s", "-B1", folder], capture_output=True, check=True)
    return int(done.stdout.split()[0])


def _without_kit(forecast: Forecast) -> DirForecast:
    return next(row for row in forecast.rows if not row.with_kit)


def _segments(log_dir: Path, forecast: Forecast) -> dict[tuple[str, int], int]:
    """Return the segments that are recovered, with their bytes."""
    return {
        (log.folder, int(file.stem)): file.stat().st_size
        for _, log in forecast.logs
        for file in sorted((log_dir / log.folder).glob("*.log"))
        if log.first_recovered_offset is not None and int(file.stem) >= log.first_recovered_offset
    }


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Path:
    """The log directory of a broker that was killed under load; one log has a torn tail."""
    folder = tmp_path_factory.mktemp("killed")
    log_dir = kill_under_load(folder, Load.draw(seed, WRITTEN_BYTES), seed=seed)
    last = max((log_dir / TORN[0]).glob("*.log"))
    with last.open("ab") as file:
        file.write(last.read_bytes()[: TORN[1]] or bytes(TORN[1]))
    return log_dir


@pytest.mark.parametrize("threads", [1, 4])
def test_a_broker_recovers_what_was_forecast_in_about_the_time(
    killed: Path, tmp_path: Path, threads: int
) -> None:
    broker = start_copy(killed, tmp_path, num_recovery_threads_per_data_dir=threads)
    os.sync()

    forecast = _forecast(broker.log_dir, tmp_path, threads=threads)
    segments, row = _segments(broker.log_dir, forecast), _without_kit(forecast)
    start: Start = started(broker)

    assert start.recovered == set(segments)
    assert row.recovered_segments == len(segments)
    assert row.recovered_bytes == sum(segments.values())
    findings = [finding for _, log in forecast.logs for finding in log.findings]
    assert start.cut == {(finding.folder, finding.base_offset) for finding in findings}
    assert TORN[0] in {finding.folder for finding in findings}
    # Machines that run tests are shared, and others' work is not forecast; docs/recovery.md has
    # the figures of quiet ones.
    assert 1 / 8 < row.seconds / (start.loaded_ms / 1000) < 4


def test_logs_that_are_marked_are_recovered_or_opened_as_forecast(
    killed: Path, tmp_path: Path
) -> None:
    broker = start_copy(killed, tmp_path)
    marked = {"plain-1": f".{'a' * 32}-stray", "plain-2": f".{'b' * 32}-delete"}
    for name, mark in marked.items():
        (broker.log_dir / name).rename(broker.log_dir / (name + mark))

    forecast = _forecast(broker.log_dir, tmp_path, threads=2)
    row = _without_kit(forecast)
    segments = _segments(broker.log_dir, forecast)
    start = started(broker)

    assert start.recovered == {(folder.partition(".")[0], base) for folder, base in segments}
    recovered = {folder for folder, _ in start.recovered}
    assert "plain-1" in recovered
    assert "plain-2" not in recovered
    assert (row.stray_logs, row.delete_logs) == (1, 1)


def test_after_a_clean_stop_segments_with_bad_indexes_are_recovered_as_forecast(
    killed: Path, tmp_path: Path
) -> None:
    broker = start_copy(killed, tmp_path)
    with broker:
        broker.start_broker()
        (running,) = run_triage(TriageOptions((str(broker.log_dir),), now_ms=1))
        use, counted = run_disk(DiskOptions((str(broker.log_dir),), now_ms=1)), _du(broker.log_dir)
        assert running.is_running
        assert use.dirs[0].lock.pid is not None
        assert use.used_bytes == counted
        broker.stop_broker()
        (stopped,) = run_triage(TriageOptions((str(broker.log_dir),), now_ms=1))
        assert (stopped.is_running, stopped.starts, stopped.steps) == (False, True, (START,))
        logs = sorted((broker.log_dir / "plain-0").glob("*.log"))
        logs[0].with_suffix(".index").unlink()
        logs[1].with_suffix(".txnindex").write_bytes(bytes(34))  # of offset 0

        forecast = _forecast(broker.log_dir, tmp_path, threads=2)
        row = _without_kit(forecast)
        before = len(broker.log_file.read_text())
        broker.start_broker()
        text = broker.log_file.read_text()[before:]

    found = {int(base) for base in re.findall(r"to log file \S+/(\d+)\.log", text)}
    assert found == {int(log.stem) for log in logs[:2]}
    assert row.is_clean
    assert row.missing_indexes == 2
    assert row.recovered_segments == 3  # and that of __cluster_metadata
