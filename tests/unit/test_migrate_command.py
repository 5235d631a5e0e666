"""The verb migrate: its subcommands, and what inventory refuses."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_segments.commands.migrate import migrate
from kafka_segments.errors import CorruptTextError
from kafka_segments.wire.kafka_configs import (
    GoneSetting,
    find_gone_in_described,
    find_gone_in_properties,
)

DESCRIBED = """\
Dynamic configs for topic orders are:
  message.format.version=0.9.0 sensitive=false synonyms={}
  retention.ms=1 sensitive=false synonyms={}
Dynamic configs for broker 3 are:
  log.message.format.version=0.10.0 sensitive=false synonyms={}
Default configs for brokers in the cluster are:
  log.message.downconversion.enable=true sensitive=false synonyms={}
"""


def test_the_group_lists_inventory() -> None:
    assert "\n  inventory " in CliRunner().invoke(migrate, ["--help"]).stdout


def test_settings_that_kafka_4_lacks_are_found() -> None:
    properties = "broker.id=1\nzookeeper.connect=zk:2181\ninter.broker.protocol.version=0.10.2\n"

    assert find_gone_in_properties("p", properties) == [
        GoneSetting(None, None, "inter.broker.protocol.version", "0.10.2"),
        GoneSetting(None, None, "zookeeper.connect", "zk:2181"),
    ]
    assert find_gone_in_described("d", DESCRIBED) == [
        GoneSetting("orders", None, "message.format.version", "0.9.0"),
        GoneSetting(None, 3, "log.message.format.version", "0.10.0"),
        GoneSetting(None, None, "log.message.downconversion.enable", "true"),
    ]


def test_files_that_are_no_configs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptTextError, match="is no line of"):
        find_gone_in_described("d", "no such line")
    file = tmp_path / "p"
    file.write_text("a=\\u00zz", "utf-8")

    done = CliRunner().invoke(
        migrate, ["inventory", "--warehouse", "nowhere", "--server-properties", str(file)]
    )

    assert done.exit_code == 2
    assert done.stderr.startswith(f"kafka-segments: {file}: ")
