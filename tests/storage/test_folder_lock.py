"""Runs on one warehouse wait for each other, and say so."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kafka_segments.files.storage.folder_lock import warehouse_lock
from support.kafka.waiting import wait_until


def test_who_waits_for_other_runs_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warehouse = str(tmp_path)

    def take() -> None:
        with warehouse_lock(warehouse, alone=True):
            pass

    with ThreadPoolExecutor(1) as pool:
        with warehouse_lock(warehouse, alone=False), warehouse_lock(warehouse, alone=False):
            nobody_waited = not caplog.messages
            waiting = pool.submit(take)
            wait_until(lambda: bool(caplog.messages), "a word of the wait")
        waiting.result()

    assert nobody_waited
    assert caplog.messages == [f"waiting until other runs on {warehouse} end"]
