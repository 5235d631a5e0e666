"""Files with which a broker does not start, as ``audit`` says: each tried with a real one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.kafka import kafka_clients as clients
from support.kafka.kafka_broker import KafkaBroker
from support.kafka.kafka_referee import RefereeError
from support.kafka.spoilt_broker import OF_SEGMENTS, sent
from support.logs.spoiled_topics import EPOCHS, INDEX, TXN_INDEX, Log

pytestmark = pytest.mark.long
TOO_MANY = 10 * 2**20 + 8


def _longer(log: Log) -> Path:
    path = log.active.with_suffix(INDEX)
    path.write_bytes(path.read_bytes().ljust(TOO_MANY, b"\0"))
    return path


def _unreadable_epochs(log: Log) -> Path:
    (log.folder / EPOCHS).write_bytes(b"1\nx\n")
    return log.folder / EPOCHS


def _folder(path: Path) -> Path:
    path.unlink(missing_ok=True)
    path.mkdir()
    return path


SPOILT: dict[str, Callable[[Log], Path]] = {
    "index longer than its limit": _longer,
    "epochs that cannot be read": _unreadable_epochs,
    "folder as active index": lambda log: _folder(log.active.with_suffix(INDEX)),
    "folder as transaction index": lambda log: _folder(log.first.with_suffix(TXN_INDEX)),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a broker that was stopped cleanly; topic ``t`` has three segments."""
    folder = tmp_path_factory.mktemp("written")
    with KafkaBroker(folder) as broker:
        broker.start_broker()
        clients.create(broker.bootstrap, {"t": 1}, **OF_SEGMENTS)
        sender = clients.producer(broker.bootstrap, batch_num_messages=1, linger_ms=0)
        clients.send(sender, sent("t", 0, 120))
        broker.stop_broker()
    return folder


def test_a_broker_starts_on_what_is_sound(written: Path, tmp_path: Path) -> None:
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)

    with KafkaBroker(tmp_path) as broker:
        broker.start_broker()
        broker.stop_broker()


@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_broker_does_not_start_where_audit_says_so(
    spark: SparkSession, written: Path, tmp_path: Path, spoilt: str
) -> None:
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    path = SPOILT[spoilt](Log(tmp_path / "logs" / "t-0"))

    done = CliRunner().invoke(
        cli, ["audit", "--source", str(tmp_path / "logs"), "--output", "json"]
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    effects = [row["effect"] for row in rows if Path(row["path"]) == path]
    with KafkaBroker(tmp_path) as broker, pytest.raises(RefereeError):
        broker.start_broker()

    assert effects == ["fails_to_start"], done.output
