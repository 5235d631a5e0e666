"""What a session sets so that its JVM keeps to one folder."""

from pathlib import Path

import pytest

from kafka_segments.engine.spark import scratch


@pytest.mark.parametrize(("length", "is_short"), [(60, True), (61, False)])
def test_where_its_path_is_too_long_there_are_no_sockets_in_it(length: int, is_short: bool) -> None:
    folder = Path("/" + "f" * (length - 1))

    settings = scratch.scratch_settings(folder)

    assert settings["spark.sql.warehouse.dir"] == f"file://{folder}/warehouse"
    key = "spark.python.unix.domain.socket.enabled"
    assert settings.get(key) == (None if is_short else "false")
