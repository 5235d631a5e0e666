"""What the log layers of other releases make of logs, against that of 4.3.1.

``ReleaseAnswers.java`` runs in one JVM a release, with the JARs in ``jars/releases``.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_referee import KAFKA_JARS, REPOSITORY

pytestmark = pytest.mark.slow
SOURCE = Path(__file__).parent / "ReleaseAnswers.java"
OTHERS = REPOSITORY / "jars" / "releases"
RELEASES = ("3.9.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0")
LIGHT_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
NOW_MS = 1_700_003_600_000
INDEX_BYTES = 65_536  # files of this size are preallocated: small ones are soon compared


class Answers(NamedTuple):
    """What a release answered: by name, the words of each line."""

    release: str
    told: dict[str, list[str]]


def _ask(release: str, folder: Path, tasks: dict[str, str]) -> Answers:
    jars = KAFKA_JARS if release == "4.3.1" else OTHERS / release
    assert jars.is_dir(), f"{jars}: run `make jars-test`"
    asked, answered = folder / f"{release}.tasks", folder / f"{release}.answers"
    asked.write_text("".join(f"{task}\n" for task in tasks.values()))
    program = ["java", *LIGHT_JVM, "-cp", f"{jars}/*", str(SOURCE), str(asked), str(answered)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = answered.read_text().replace(str(folder / release), "")
    lines = [line.split("\t") for line in text.splitlines()]
    return Answers(release, dict(zip(tasks, lines, strict=True)))


def _load(
    log: Path, *, is_clean: bool = False, interval: int = 4096, size: int = INDEX_BYTES
) -> str:
    words = ("load", log, str(is_clean).lower(), interval, size, NOW_MS)
    return "\t".join(map(str, words))


def _recoveries(release: str, folder: Path, synthetic: Path) -> dict[str, str]:
    """Copy each case twice, for a load with empty index files and one without any."""
    tasks = {}
    for case in sorted(synthetic.glob("*/case.json")):
        config = json.loads(case.read_text())["config"]
        size = min(config["segment.index.bytes"], INDEX_BYTES)
        for mode in ("unclean", "missing"):
            log = folder / release / mode / case.parent.name / "t-0"
            shutil.copytree(case.parent / "t-0", log)
            for segment in log.glob("*.log") if mode == "unclean" else ():
                segment.with_suffix(".index").touch()
                segment.with_suffix(".timeindex").touch()
            name = f"{mode} {case.parent.name}"
            tasks[name] = _load(log, interval=config["index.interval.bytes"], size=size)
    return tasks


def test_recovery_writes_the_same_bytes_in_every_release(synthetic: Path, tmp_path: Path) -> None:
    told = {
        release: _ask(release, tmp_path, _recoveries(release, tmp_path, synthetic)).told
        for release in RELEASES
    }

    kafkas = told["4.3.1"]
    assert sum(words[0] != "threw" for words in kafkas.values()) >= 200
    for release in RELEASES:
        differ = [name for name, words in told[release].items() if words[:2] != kafkas[name][:2]]
        assert (release, differ) == (release, [])
