"""A recovery kit under brokers of older releases: starts with it against starts without.

``PYTHONPATH=tests python -m support.kafka.older_kits FOLDER RELEASE…`` fetches the JARs of each
release with Maven, kills a broker of it under load, damages its disk, and starts it on two copies,
on one of them with a kit. It ends with an error where something differs, and else prints what each
start recovered. Records are three days old: a broker before 3.4 remembers their producers, a later
one does not.
"""

from __future__ import annotations

import argparse
import re
import shutil
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kafka_segments.cli import cli
from support.kafka.crashed_broker import (
    MEGABYTES,
    Reached,
    damage,
    errors,
    load,
    produced,
    read_all,
)
from support.kafka.kafka_clients import WAIT_SECONDS, admin_client, list_offsets
from support.kafka.kraft_cluster import ClusterClient
from support.kafka.older_brokers import OlderBroker, fetch

TOPICS = list(MEGABYTES)
_DAYS_MS = 86_400_000
_RECOVERED = re.compile(r"partition=(\S+)-\d+, dir=\S+\] Recovering unflushed segment (\d+)")
_PROPERTIES = {
    "log.segment.bytes": 1 << 20,
    "offsets.topic.num.partitions": 1,
    "log.cleaner.enable": "false",
    "remote.log.storage.system.enable": "false",
}


def start(broker: OlderBroker) -> None:
    """Start a broker, and wait until it leads all partitions."""
    broker.start()
    admin = admin_client(broker.bootstrap)
    while True:
        found = admin.list_topics(timeout=WAIT_SECONDS).topics
        if found.keys() >= set(TOPICS) and all(
            found[name].partitions[0].leader == 1 for name in TOPICS
        ):
            return
        time.sleep(0.5)


def answers(broker: OlderBroker, start_ms: int) -> dict[str, Any]:
    """Return what clients can ask of the topics: offsets, producers, epochs, every record."""
    asked = {(topic, 0): [-2, -1, *(start_ms + 1000 * i for i in range(7))] for topic in TOPICS}
    admin = admin_client(broker.bootstrap)
    found: dict[str, Any] = {
        f"offsets, committed: {level}": list_offsets(admin, asked, is_read_committed=level)
        for level in (False, True)
    }
    with ClusterClient(max_heap="320m") as client:
        client.connect(broker.bootstrap)
        found["producers"] = client.producers()
    for topic in TOPICS:
        epochs = broker.log_dir / f"{topic}-0" / "leader-epoch-checkpoint"
        found[f"{topic} epochs"] = epochs.read_text()
        for isolation in ("read_uncommitted", "read_committed"):
            found[f"{topic} {isolation}"] = read_all(broker, topic, isolation)
    return found


def recovered(broker: Reached) -> dict[str, int]:
    """Return how many segments of each topic a broker says it recovers."""
    found: dict[str, int] = {}
    for topic, _ in _RECOVERED.findall(broker.log_file.read_text()):
        found[topic] = found.get(topic, 0) + 1
    return found


def _run(*arguments: str | Path) -> str:
    return CliRunner().invoke(cli, ["recovery", *map(str, arguments)]).output


def try_kit(jars: Path, release: str, folder: Path) -> str:
    """Compare a start with a kit with one without; return what both did."""
    start_ms = int(time.time() * 1000) - 3 * _DAYS_MS
    crashed, plain, ours = folder / "crashed", folder / "plain", folder / "ours"
    with OlderBroker(jars, release, crashed, _PROPERTIES) as broker:
        broker.start()
        load(broker, MEGABYTES, start_ms=start_ms)
        broker.kill()
    damage(crashed / "logs")
    (crashed / "server.log").unlink()
    for copy in (plain, ours):
        shutil.copytree(crashed, copy)
    with OlderBroker(jars, release, plain, _PROPERTIES) as broker:
        start(broker)
        without, read_without = answers(broker, start_ms), recovered(broker)

    made = _run("kit", "--source", ours / "logs", "--out", folder / "kit")
    applied = _run("apply", folder / "kit", "--execute")
    print(made, applied, sep="\n")
    with OlderBroker(jars, release, ours, _PROPERTIES) as broker:
        start(broker)
        with_kit, read_with = answers(broker, start_ms), recovered(broker)
        counts = [produced(broker, TOPICS)]
        for end in (broker.kill, broker.stop, broker.stop):
            end()
            start(broker)
            counts.append(produced(broker, TOPICS))
        assert errors(broker) == [], errors(broker)
    for name, answer in without.items():
        assert with_kit[name] == answer, name
    assert without["producers"]
    for before, after in pairwise(counts):
        assert after == [count + 1 for count in before], counts
    return f"{release}: without a kit {read_without}, with one {read_with}"


def main() -> None:
    """Try a kit under each release."""
    parser = argparse.ArgumentParser(description="try a recovery kit under older releases")
    parser.add_argument("folder", type=Path)
    parser.add_argument("releases", nargs="+")
    options = parser.parse_args()
    for release in options.releases:
        jars = fetch(release, options.folder / "scratch" / release)
        shutil.rmtree(options.folder / "kits" / release, ignore_errors=True)
        print(try_kit(jars, release, options.folder / "kits" / release))


if __name__ == "__main__":
    main()
