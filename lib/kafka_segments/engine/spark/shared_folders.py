"""Folders of tables that a client of Spark Connect and its server see alike."""

import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_segments.engine.spark.connect import is_connect, is_on_this_machine
from kafka_segments.files.storage.stores import store_of
from kafka_segments.files.storage.uris import GLOB_SIGN

_SHARED: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def shares_folder(spark: SparkSession, folder: str) -> bool:
    """Tell whether this process reads and writes below a folder of tables as Spark would.

    In a session of our own it does. A server of Spark Connect has to be on this machine, and to
    find at this path what is made here under a name that nobody else knows: where there is a copy,
    another disk or a container's own folder, it does not. The folder and the tables have to belong
    to who runs this: what this process makes is its own, and another user's server could not
    write it. If the folder does not exist yet, its parent is looked at. In doubt the answer is
    no. The answer holds for the session.
    """
    if not is_connect(spark):
        return True
    shared = _SHARED.setdefault(spark, set())
    if folder not in shared and _is_shared(spark, folder):
        shared.add(folder)
    return folder in shared


def _is_shared(spark: SparkSession, folder: str) -> bool:
    is_plain = store_of(folder).is_local and not GLOB_SIGN.search(folder)
    if not (is_plain and is_on_this_machine(spark)):
        return False
    try:
        there = next(path for path in (Path(folder), *Path(folder).parents) if path.exists())
        if not _is_own(there):
            return False
        seen = there / f"_seen-{uuid.uuid4().hex}"
        seen.mkdir()
    except OSError:
        return False
    try:
        return _finds(spark, str(seen))
    finally:
        with suppress(OSError):
            seen.rmdir()


def _is_own(folder: Path) -> bool:
    """Tell whether a folder, which others may not write, and what lies in it belong to our user."""
    found = [entry.stat() for entry in (folder, *folder.iterdir())]
    return not found[0].st_mode & stat.S_IWOTH and {each.st_uid for each in found} == {os.geteuid()}


def _finds(spark: SparkSession, folder: str) -> bool:
    """Tell whether a server finds a folder; it looks when it plans to read it."""
    try:
        return bool(spark.read.text(folder).schema)
    except PySparkException:
        return False
