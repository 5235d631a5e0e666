"""The wheel alone, installed from a package index as its users do, looks at directories."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_segments.extras import EXTRAS
from support.house.installed_package import build_wheel

pytestmark = [pytest.mark.slow, pytest.mark.long]
ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 350 * 1024 * 1024
_PIN = re.compile(r"^[A-Za-z0-9_.-]+==[^\\\n]+", re.MULTILINE)  # with its condition, if it has one


def _run(*words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder that is nobody's, with nothing of the tests in its environment."""
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        **{key: text for key, text in os.environ.items() if key.startswith(("PIP_", "SSL_"))},
    }
    return subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new environment with the wheel, without extras, and what pip brings for it."""
    folder = tmp_path_factory.mktemp("core")
    locked = (ROOT / "requirements.lock").read_text("utf-8")
    pins = folder / "pins.txt"
    pins.write_text("\n".join(_PIN.findall(locked)))
    _run(sys.executable, "-m", "venv", folder / "venv", folder=folder).check_returncode()
    pip = (folder / "venv" / "bin" / "python", "-m", "pip")
    done = _run(*pip, "install", "-q", "-c", pins, build_wheel(folder), folder=folder)
    assert done.returncode == 0, done.stderr
    yield folder
    shutil.rmtree(folder)


def test_pipx_runs_the_wheel_without_an_installation(core: Path) -> None:
    wheel = next(core.glob("*.whl"))
    python = core / "pipx" / "bin" / "python"
    _run(sys.executable, "-m", "venv", core / "pipx", folder=core).check_returncode()
    _run(python, "-m", "pip", "install", "-q", "pipx", folder=core).check_returncode()

    run = ("-m", "pipx", "run", "--spec", wheel, "kafka-segments")
    done = _run(python, *run, "triage", core / "venv", folder=core)

    assert done.returncode == 2, done.stderr
    assert "no log directory" in done.stderr


def test_it_is_small_and_has_nothing_of_the_extras(core: Path) -> None:
    packages = next((core / "venv" / "lib").glob("python*/site-packages"))
    files = [path for path in packages.rglob("*") if path.is_file() and not path.is_symlink()]
    heavy = {module for modules in EXTRAS.values() for module in modules}

    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    assert heavy.isdisjoint(path.name for path in packages.iterdir())


def test_triage_runs_and_names_what_tables_need(core: Path, cluster: Path) -> None:
    program = core / "venv" / "bin" / "kafka-segments"
    node = cluster / "disks" / "node-1"

    found = _run(program, "triage", node, "--output", "json", folder=core)
    refused = _run(program, "sql", "SELECT 1", "--warehouse", core, folder=core)

    assert found.returncode in (0, 1), found.stderr
    assert json.loads(found.stdout.splitlines()[0])
    assert refused.returncode == 2
    assert "pip install 'kafka-segments[spark]'" in refused.stderr
