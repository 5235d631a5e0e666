"""A real broker's hanging transaction is found on its disk, and ended by the command we print."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from kafka_segments.cli import cli
from support.kafka.kafka_broker import KafkaBroker
from support.kafka.kafka_clients import (
    Sent,
    admin_client,
    consumer,
    create,
    list_offsets,
    producer,
    read,
    send,
)
from support.kafka.kafka_tools import KafkaTools
from support.kafka.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPIC, ID = "orders", "forgotten-transaction"
BEFORE, OPEN, BEHIND = ([f"{name} {n}".encode() for n in range(3)] for name in "abc")
FIRST_MS = 1_795_000_000_000
LATEST = -1
PATIENCE_SECONDS = 60.0
MAY_WRITE_TO_INTERNAL_TOPICS = "__admin_client"


def _run(*arguments: object, findings: bool = False) -> Any:
    done = CliRunner().invoke(cli, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == int(findings), done.output
    return done


def _sent(values: list[bytes]) -> list[Sent]:
    return [Sent(TOPIC, 0, FIRST_MS + number, value) for number, value in enumerate(values)]


def _leave_hanging(bootstrap: str) -> None:
    """Write records of a transaction, and let its coordinator forget it; others follow."""
    create(bootstrap, {TOPIC: 1})
    plain = producer(bootstrap)
    send(plain, _sent(BEFORE))
    transactional = producer(bootstrap, transactional_id=ID, transaction_timeout_ms=900_000)
    transactional.init_transactions()
    transactional.begin_transaction()
    send(transactional, _sent(OPEN))
    send(plain, _sent(BEHIND))
    as_a_broker = producer(bootstrap, client_id=MAY_WRITE_TO_INTERNAL_TOPICS)
    key = struct.pack(">hh", 0, len(ID)) + ID.encode()
    as_a_broker.produce("__transaction_state", None, key, partition=0)
    assert as_a_broker.flush(PATIENCE_SECONDS) == 0


def _last_stable_offset(bootstrap: str) -> int:
    asked = {(TOPIC, 0): [LATEST]}
    found = list_offsets(admin_client(bootstrap), asked, is_read_committed=True)
    return found[TOPIC, 0, LATEST][0]


@pytest.mark.long
def test_the_command_that_is_printed_ends_a_hanging_transaction(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse = ("--warehouse", tmp_path / "warehouse")

    def read_disk() -> None:
        source = ("--source", broker.log_dir)
        _run("build", *source, *warehouse, "--index-dir", tmp_path / "indexes")
        _run("internals", *source, *warehouse)

    with KafkaBroker(tmp_path) as broker:
        broker.start_broker()
        _leave_hanging(broker.bootstrap)
        broker.stop_broker()

        read_disk()
        told = _run("internals", "transactions", *warehouse, "--output", "json", findings=True)
        (row,) = map(json.loads, told.stdout.splitlines())
        shown = _run("internals", "transactions", *warehouse, findings=True)
        command = shown.stdout.splitlines()[-1]
        assert row["command"] == command
        names = ("transactional_id", "is_forgotten", "status", "first_offset", "since_ms")
        assert [row[name] for name in names] == [ID, True, "hanging", len(BEFORE), FIRST_MS]

        broker.start_broker()
        reader = consumer(broker.bootstrap, "readers", is_read_committed=True)
        reader.subscribe([TOPIC])
        assert [message.value() for message in read(reader, len(BEFORE))] == BEFORE
        assert _last_stable_offset(broker.bootstrap) == row["first_offset"]

        tools = KafkaTools(tmp_path / "tools", broker.bootstrap)
        tools.run(command.replace("HOST:PORT", broker.bootstrap))

        end = len(BEFORE + OPEN + BEHIND) + 1  # the marker
        wait_until(lambda: _last_stable_offset(broker.bootstrap) == end, "nothing is held back")
        assert [message.value() for message in read(reader, len(BEHIND))] == BEHIND
        reader.close()
        broker.stop_broker()

        read_disk()
        done = _run("internals", "transactions", *warehouse, "--output", "json")
        assert done.stdout == ""
