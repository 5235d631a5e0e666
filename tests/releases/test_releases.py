"""What the log layers of other releases make of logs, against that of 4.3.1.

``ReleaseAnswers.java`` runs in one JVM a release, with the JARs in ``jars/releases``.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_segments.kafka.broker_rules.record_lookups import record_lookup
from kafka_segments.kafka.broker_rules.versions import parse_version
from kafka_segments.kafka.codecs.streams import DecompressionError
from kafka_segments.verbs.find.search.first_record import FirstRecordFinder
from support.kafka.kafka_referee import KAFKA_JARS, REPOSITORY
from support.logs.framings import framings
from support.logs.log_reading import reader_of
from support.logs.spoiled_topics import KINDS, Log
from support.logs.strategies import v2_batch, v2_record

pytestmark = pytest.mark.slow
SOURCE = Path(__file__).parent / "ReleaseAnswers.java"
OTHERS = REPOSITORY / "jars" / "releases"
RELEASES = ("3.9.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0")
ENDS = (RELEASES[0], "4.3.1", RELEASES[-1])
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


@pytest.mark.parametrize(
    "releases", [ENDS, pytest.param(RELEASES, marks=pytest.mark.long)], ids=["ends", "all"]
)
def test_recovery_writes_the_same_bytes_in_every_release(
    synthetic: Path, tmp_path: Path, releases: tuple[str, ...]
) -> None:
    told = {
        release: _ask(release, tmp_path, _recoveries(release, tmp_path, synthetic)).told
        for release in releases
    }

    kafkas = told["4.3.1"]
    assert sum(words[0] != "threw" for words in kafkas.values()) >= 200
    for release in releases:
        differ = [name for name, words in told[release].items() if words[:2] != kafkas[name][:2]]
        assert (release, differ) == (release, [])


# Of long tests: what audit and lookups say of each release.

NEEDS_A_BROKER = ("txn-missing", "time-dangling-link")


def _made_by_kafka(folder: Path) -> Path:
    """Make a log of three segments with all files that a clean stop leaves."""
    log = folder / "made" / "t-0"
    log.mkdir(parents=True)
    for base in (0, 20, 40):
        batches = (
            v2_batch(offset, [(1000 + offset, None, b"v" * 3000)], leader_epoch=0)
            for offset in range(base, base + 20)
        )
        (log / f"{base:020d}.log").write_bytes(b"".join(batches))
        (log / f"{base:020d}.index").touch()
        (log / f"{base:020d}.timeindex").touch()
    assert _ask("4.3.1", folder, {"made": _load(log)}).told["made"][0] == "60"
    return log


@pytest.mark.long
@pytest.mark.parametrize("release", [each for each in RELEASES if each != "4.3.1"])
def test_a_start_on_spoilt_files_and_a_clean_stop_are_those_of_4_3(
    tmp_path: Path, release: str
) -> None:
    made = _made_by_kafka(tmp_path)
    told = {}
    for each in (release, "4.3.1"):
        tasks = {}
        for name, kind in KINDS.items():
            if name not in NEEDS_A_BROKER:
                log = tmp_path / each / name / "t-0"
                shutil.copytree(made, log)
                kind.spoil(Log(log))
                tasks[name] = _load(log, is_clean=True)
        told[each] = _ask(each, tmp_path, tasks).told

    assert [name for name, words in told[release].items() if words != told["4.3.1"][name]] == []


RECORD_COUNT, FIRST_MS = 6, 1000
LIMITS = (2**31 - 1, 27, 10)  # a record has 27 bytes, as its own length counts


def _framed() -> dict[str, bytes]:
    """Give a batch in each framing; one as it is, one whose last record is missing."""
    records = [
        v2_record(timestamp_delta=at, offset_delta=at, key=None, value=b"v" * 20)
        for at in range(RECORD_COUNT)
    ]
    batches = {}
    for what, payload in (("", b"".join(records)), (" cut", b"".join(records[:-1]))):
        for name, (codec, made) in framings(payload).items():
            stamps = [(FIRST_MS + at, None, b"") for at in range(RECORD_COUNT)]
            batches[name + what] = v2_batch(0, stamps, codec=codec, payload=made)
    return batches


def _found_by_us(release: str, log: bytes, timestamp_ms: int, most: int) -> str:
    lookup = record_lookup(parse_version(release), most_record_bytes=most)
    try:
        found = FirstRecordFinder(lookup).find(
            reader_of(log), start=0, end=len(log), least_timestamp_ms=timestamp_ms, least_offset=0
        )
    except DecompressionError:
        return "threw"
    return "none" if found is None else str(found.offset)


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
def test_a_time_is_looked_up_in_each_framing_as_by_the_release(
    tmp_path: Path, release: str
) -> None:
    framed = _framed()
    tasks, ours = {}, {}
    for number, (name, batch) in enumerate(framed.items()):
        file = tmp_path / f"{number}.log"
        file.write_bytes(batch)
        for at in (0, 3, RECORD_COUNT - 1):
            for most in LIMITS:
                asked = f"{name} {at} {most}"
                tasks[asked] = f"lookup\t{file}\t{FIRST_MS + at}\t{most}"
                ours[asked] = _found_by_us(release, batch, FIRST_MS + at, most)

    told = _ask(release, tmp_path, tasks).told

    differ = {
        asked: (ours[asked], words) for asked, words in told.items() if ours[asked] != words[0]
    }
    assert differ == {}
