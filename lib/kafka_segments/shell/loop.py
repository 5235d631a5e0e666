"""The loop of the shell: a line is a verb with its options; nothing that a verb does ends it."""

import logging
import shlex
import sys
import time
from collections.abc import Iterable
from contextlib import redirect_stderr

import click
from pyspark.sql import SparkSession

from kafka_segments.console.lines import say
from kafka_segments.console.options import ExitStatus, interrupted_status
from kafka_segments.engine.spark.jvm_end import jvm_end
from kafka_segments.files.storage.scratch import scratch_folder

_LEAVE = ("exit", "quit")
_HELP = ("help", "?")
NAME = "kafka-segments"


class Shell:
    """Runs lines in a session that is open."""

    def __init__(self, group: click.Group, spark: SparkSession) -> None:
        self._group = group
        self._spark = spark

    def run(self, lines: Iterable[str]) -> int:
        """Run lines until they end or one leaves; return the highest status of a verb.

        Raises:
            SparkEndedError: Spark's JVM ended.
        """
        highest: int = ExitStatus.DONE
        for line in lines:
            try:
                words = shlex.split(line, comments=True)
            except ValueError as error:
                say(f"{NAME}: {error}: a quote that is open?")
                highest = max(highest, ExitStatus.USAGE)
                continue
            if not words:
                continue
            if words[0] in _LEAVE:
                break
            try:
                status = self._run_verb(words)
            except KeyboardInterrupt as error:  # after the verb, while its traces are removed
                status = interrupted_status(error)
            highest = max(highest, status)
            if status == ExitStatus.TERMINATED:
                break
            self._refuse_dead_session()
        return highest

    def _run_verb(self, words: list[str]) -> int:
        """Run one verb and say its status; a typed program name in front is passed over."""
        if words[0] == NAME:
            words = words[1:]
        if not words or words[0] in _HELP:
            words = [*words[1:], "--help"]
        if words[0] == "shell":
            say(f"{NAME}: this is the shell already")
            return ExitStatus.USAGE
        if not scratch_folder().is_dir():
            say(
                f"{NAME}: {scratch_folder()} is gone, and Spark's session does not work without it:"
                " a cleaner of temporary files took it. Leave the shell and start it again"
            )
            say(f"status {int(ExitStatus.FAILED)}, 0.0 s")
            return ExitStatus.FAILED
        started = time.monotonic()
        status = self._status_of(words)
        if status != ExitStatus.TERMINATED:
            self._tidy()
        say(f"status {status}, {time.monotonic() - started:.1f} s")
        return status

    def _status_of(self, words: list[str]) -> int:
        try:
            with redirect_stderr(sys.stderr):  # a verb may write there in its own form
                self._group.main(words, prog_name=NAME)
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else ExitStatus.FAILED
        except KeyboardInterrupt as error:
            return interrupted_status(error)
        return ExitStatus.DONE

    def _tidy(self) -> None:
        """Forget what a verb left in the session: its views are of one warehouse."""
        logging.getLogger().handlers.clear()  # the next verb says how much is logged
        try:
            for view in self._spark.catalog.listTables():
                if view.isTemporary:
                    self._spark.catalog.dropTempView(view.name)
            self._spark.catalog.clearCache()
        except Exception as error:
            ended = jvm_end(self._spark, error)
            raise (ended or error) from error

    def _refuse_dead_session(self) -> None:
        ended = jvm_end(self._spark, RuntimeError())
        if ended is not None:
            raise ended
