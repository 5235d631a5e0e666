"""Settings of a session that hold for a while."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from kafka_segments.engine.spark.connect import is_connect

_SHARED: dict[tuple[int, str, str], tuple[int, Mapping[str, str | None]]] = {}
"""How many blocks a setting of a session has, and what it replaced; by session, key and value."""
_SHARED_LOCK = threading.Lock()


@contextmanager
def settings_meanwhile(
    spark: SparkSession, settings: Mapping[str, str]
) -> Iterator[Mapping[str, str | None]]:
    """Give a session settings within a block; yield those that they replace, and put these back."""
    before = _values(spark, settings)
    try:
        _set(spark, settings)
        yield before
    finally:
        restore(spark, before)


@contextmanager
def setting_shared(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """Give a session a setting while any thread is within such a block: the last puts it back."""
    shared = (id(spark), key, value)
    with _SHARED_LOCK:
        blocks, before = _SHARED.get(shared) or (0, _values(spark, (key,)))
        if not blocks:
            _set(spark, {key: value})
        _SHARED[shared] = blocks + 1, before
    try:
        yield
    finally:
        with _SHARED_LOCK:
            blocks, before = _SHARED.pop(shared)
            if blocks > 1:
                _SHARED[shared] = blocks - 1, before
            else:
                restore(spark, before)


def restore(spark: SparkSession, before: Mapping[str, str | None]) -> None:
    """Give settings the values that they had; None: they had none."""
    _set(spark, {key: value for key, value in before.items() if value is not None})
    unset = [key for key, value in before.items() if value is None]
    if is_connect(spark) and unset:
        from pyspark.sql.connect.proto import ConfigRequest  # noqa: PLC0415

        operation = ConfigRequest.Operation(unset=ConfigRequest.Unset(keys=unset))
        spark.client.config(operation)
        return
    for key in unset:
        spark.conf.unset(key)


def _values(spark: SparkSession, keys: Iterable[str]) -> dict[str, str | None]:
    if is_connect(spark):  # which is asked once for all of them
        asked = dict.fromkeys(keys)
        found = spark.client.get_config_with_defaults(*asked.items())
        return dict(zip(asked, found, strict=True))
    return {key: spark.conf.get(key, None) for key in keys}


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    conf: Any = spark.conf
    if is_connect(spark) and settings:
        conf._set_all(dict(settings), silent=False)
        return
    for key, value in settings.items():
        conf.set(key, value)
