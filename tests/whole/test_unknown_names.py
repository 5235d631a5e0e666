"""Topics and logs that are asked for, and that lie in no folder that is given."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_segments.cli import cli
from kafka_segments.console.local_folders import nearest_names


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("records", "--topic", "ordrs"), "no segment of topic ordrs is in the sources; nearest: "),
        (("records", "--topic", "#"), "no segment of topic # is in the sources; there are: "),
        (("records", "--log", "orders-99"), "no segment of orders-99 is in the sources; nearest: "),
        (
            ("cleaner", "--log", "__consumer_offset-0"),
            "__consumer_offset-0 is no compacted log here; nearest: __consumer_offsets-0",
        ),
        (("cleaner", "--log", "orders-0"), "orders-0 is no compacted log here; "),
    ],
)
def test_a_name_that_is_nowhere_is_refused_with_the_nearest(
    node: Path, words: tuple[str, ...], told: str
) -> None:
    verb, *asked = words

    done = CliRunner().invoke(cli, [verb, str(node), *asked])

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kafka-segments: {told}")
    assert "not looked at" not in done.stderr


def test_what_could_not_be_looked_at_is_named_beside_the_nearest() -> None:
    unread = ["/d: Permission denied", "/e: Permission denied"]

    assert nearest_names("t", []) == "there is none"
    assert nearest_names("order", ["orders", "t"], unread=unread) == (
        "nearest: orders; not looked at: /d: Permission denied and 1 more"
    )
