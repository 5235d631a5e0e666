"""What brokers of older releases write about themselves, and what they answer.

``PYTHONPATH=tests python -m support.kafka.older_lives FOLDER RELEASE…`` fetches the JARs of each
release with Maven, lets a broker of it live (``OlderLife.java``; ``--seed`` draws another life),
and packs FOLDER/older.tar.xz, which ``tests/golden`` keeps:

- ``RELEASE/logs``: the internal topics' segments and snapshots of a broker that was killed twice;
- ``RELEASE/records.jsonl``: each record as that release's own classes read it;
- ``RELEASE/answers.json``, from 3.0 on ``transactions.json``: what Admin answered just before;
- ``RELEASE/spoiled``: a ``__consumer_offsets``, all but the last of whose partitions have a record
  that not every release reads, and in ``RELEASE/served.json`` which commits a broker that was
  started on it serves, and what it logged.

Releases before 3.0 run with ZooKeeper.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tarfile
import time
from pathlib import Path

from kafka_segments.kafka.broker_rules.consumer_groups import group_partition
from kafka_segments.kafka.broker_rules.versions import parse_version
from support.kafka.older_brokers import OlderBroker, fetch, has_kraft, has_tiers
from support.logs import group_logs as made

OFFSETS = "__consumer_offsets"
CASES = (
    (made.group_key("of-a-new-kind", 3), made.consumer_group(1)),
    (made.group_key("of-a-newer-kind", 17), None),
    (made.commit_key("of-version-4"), made.commit_value(6, 4)),
    (made.commit_key("cut-off"), made.commit_value(6)[:-3]),
    None,
)
_TOLD = re.compile("error loading|unknown|failed to load", re.IGNORECASE)
_NEW_COORDINATOR_SINCE, _SCRAM_SINCE = (3, 7), (3, 5)
_NEW_COORDINATOR = {"group.coordinator.rebalance.protocols": "classic,consumer"}


def has_new_coordinator(release: str) -> bool:
    """Tell whether brokers of a release run the coordinator of KIP-848 here."""
    return parse_version(release) >= _NEW_COORDINATOR_SINCE


def _broker(jars: Path, release: str, folder: Path, partitions: int) -> OlderBroker:
    new = _NEW_COORDINATOR if has_new_coordinator(release) else {}
    return OlderBroker(jars, release, folder, {"offsets.topic.num.partitions": partitions, **new})


def let_live(jars: Path, release: str, scratch: Path, target: Path, seed: int) -> None:
    """Let a broker live; keep its internal topics, its answers, and how it reads each record."""
    tests = {
        "consumer": has_new_coordinator(release),
        "scram": not has_kraft(release) or parse_version(release) >= _SCRAM_SINCE,
        "tiered": has_tiers(release),
    }
    abilities = [name for name, is_there in tests.items() if is_there]
    with _broker(jars, release, scratch, 1) as broker:
        broker.start()
        broker.client("OlderLife", "live", broker.bootstrap, str(seed), *abilities)
        broker.kill()
        broker.start()
        broker.client("OlderLife", "live-on", broker.bootstrap, str(seed + 1), *abilities)
        answers = {"answers": broker.client("OlderAnswers", broker.bootstrap)}
        if has_kraft(release):
            answers["transactions"] = broker.client("OlderTransactions", broker.bootstrap)
        broker.kill()
        for name, answer in answers.items():
            (target / f"{name}.json").write_text(answer)
        files = []
        for file in sorted(broker.log_dir.glob("__*-*/*")):
            if file.suffix in (".log", ".checkpoint") and file.stat().st_size:
                kept = target / "logs" / file.parent.name / file.name
                kept.parent.mkdir(parents=True, exist_ok=True)
                files.append(str(shutil.copy2(file, kept)))
        (target / "records.jsonl").write_text(broker.client("OlderRecords", *files))


def group_names(partition: int) -> tuple[str, str]:
    """Return two groups of a partition: one commits before the record that is tried, one after."""
    before, after = (
        next(
            name
            for name in (f"{place}-{number}" for number in range(1_000))
            if group_partition(name, len(CASES)) == partition
        )
        for place in ("before", "after")
    )
    return before, after


def try_loading(jars: Path, release: str, scratch: Path, target: Path) -> None:
    """Start a broker on records that not every release reads; keep them, and what it serves."""
    names = {number: group_names(number) for number in range(len(CASES))}
    records = []
    for number, case in enumerate(CASES):
        before, after = names[number]
        given: list[tuple[bytes, bytes | None]] = [
            (made.commit_key(before), made.commit_value(5)),
            *(() if case is None else (case,)),
            (made.commit_key(after), made.commit_value(7)),
        ]
        for key, value in given:
            records += [str(number), key.hex(), "" if value is None else value.hex()]
    groups = [name for pair in names.values() for name in pair]
    with _broker(jars, release, scratch, len(CASES)) as broker:
        broker.start()
        # The first that asks lets the topic be made.
        broker.client("OlderLife", "committed", broker.bootstrap, *groups)
        broker.client("OlderLife", "send", broker.bootstrap, OFFSETS, *records)
        broker.stop()
        for folder in broker.log_dir.glob(f"{OFFSETS}-*"):
            for log in folder.glob("*.log"):
                kept = target / "spoiled" / folder.name / log.name
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(log, kept)
        logged = broker.log_file.stat().st_size
        broker.start()
        time.sleep(5.0)  # coordinators load in the background
        answers = broker.client("OlderLife", "committed", broker.bootstrap, *groups).splitlines()
        told = broker.log_file.read_text()[logged:]
    served = dict(answer.split(" ", 1) for answer in answers if " " in answer)
    lines = [line for line in told.splitlines() if _TOLD.search(line) and OFFSETS in line]
    kept_answers = {
        "served": [[served[name] for name in pair] for pair in names.values()],
        "logged": [line.replace(str(scratch), "") for line in lines],
    }
    (target / "served.json").write_text(json.dumps(kept_answers, indent=1) + "\n")


def main() -> None:
    """Make the archive of ``tests/golden`` anew."""
    parser = argparse.ArgumentParser(description="let brokers of older releases write")
    parser.add_argument("folder", type=Path)
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for release in options.releases:
        scratch = options.folder / "scratch" / release
        jars, target = fetch(release, scratch), options.folder / "older" / release
        for folder in (scratch / "living", scratch / "loading", target):
            shutil.rmtree(folder, ignore_errors=True)
        target.mkdir(parents=True)
        let_live(jars, release, scratch / "living", target, options.seed)
        try_loading(jars, release, scratch / "loading", target)
    with tarfile.open(options.folder / "older.tar.xz", "w:xz", preset=9) as archive:
        archive.add(options.folder / "older", "older")


if __name__ == "__main__":
    main()
