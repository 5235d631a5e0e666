"""``kafka-segments --compile``: what is compiled early is all that reading segments calls."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_segments import compiled_calls
from kafka_segments.cli import cli

VERBS = (
    ("triage",),
    ("records",),
    ("recovery", "kit", "--engine", "threads", "--out", "{kit}", "--source"),
)


def _run(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kafka_segments", *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_what_reads_directories_compiles_nothing_after_it(broker: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    compiled = _run(cache, "--compile")
    kept = sorted(cache.rglob("*.nbc"))
    done = [
        _run(cache, *(word.format(kit=tmp_path / "kit") for word in verb), str(broker / "logs"))
        for verb in VERBS
    ]

    assert (compiled.returncode, compiled.stdout) == (0, ""), compiled.stderr
    assert "compiled what reads segments, in " in compiled.stderr and str(cache) in compiled.stderr
    assert [one.returncode for one in done if one.returncode not in (0, 1)] == []
    assert kept and sorted(cache.rglob("*.nbc")) == kept


def test_where_nothing_can_be_kept_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_calls, "compile_calls", lambda: None)

    result = CliRunner().invoke(cli, ["--compile"])

    assert (result.exit_code, result.stdout) == (3, "")
    assert "set NUMBA_CACHE_DIR" in result.stderr
