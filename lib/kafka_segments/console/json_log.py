"""``--log-format json``: what a verb writes on stderr, as one JSON object a line."""

import json
import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from io import TextIOBase
from itertools import pairwise
from typing import Any, TextIO

LOG_FORMAT = "--log-format"
TEXT, JSON = "text", "json"
INFO, WARNING, ERROR = "info", "warning", "error"
_CLICKS_ERROR = "Error: "


class JsonLog(TextIOBase):
    """A stderr on which each line is an object: time, level, verb, message, and more fields.

    What is written to it as to any file is one, too: lines of libraries and of tracebacks are of
    level info. It is no terminal, so nothing shows a progress bar.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, stream: TextIO, verb: str) -> None:
        self.stream = stream
        self._verb = verb
        self._begun = ""

    def log(self, level: str, message: str, **fields: Any) -> None:
        """Write an object; a line that was begun before comes first."""
        if self._begun:
            self.write("\n")
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": time, "level": level, "verb": self._verb, "message": message, **fields}
        self.stream.write(f"{json.dumps(line)}\n")

    def write(self, text: str) -> int:
        """Write each line that ends; empty ones are left out."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            begun, self._begun = self._begun, ""
            if line.strip():
                self.log(ERROR if line.startswith(_CLICKS_ERROR) else INFO, line)
            self._begun = begun
        return len(text)

    def writable(self) -> bool:
        """Tell that it can be written to."""
        return True

    def fileno(self) -> int:
        """Return the file of the stream, where others write as they do: Spark's JVM."""
        return self.stream.fileno()

    def flush(self) -> None:
        """Hand over what was written; a line that has not ended waits."""
        self.stream.flush()


class _JsonHandler(logging.Handler):
    """Hands the records of Python's logging to a ``JsonLog``, with their logger."""

    def __init__(self, log: JsonLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; a trace is field ``exception``."""
        fields = {"logger": record.name}
        if record.exc_info:
            fields["exception"] = logging.Formatter().formatException(record.exc_info)
        self._log.log(record.levelname.lower(), record.getMessage(), **fields)


def log_handler(formatter: logging.Formatter) -> logging.Handler:
    """Return what writes records of Python's logging on stderr, in lines by ``formatter``."""
    if isinstance(sys.stderr, JsonLog):
        return _JsonHandler(sys.stderr)
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(formatter)
    return lines


def log_as_asked(args: Sequence[str], verb: str) -> None:
    """Write in JSON from now on, where a verb's words ask for it, or the shell that it is typed in.

    Its options are not parsed yet, so that what is wrong with them is written in JSON, too.
    """
    asked = f"{LOG_FORMAT}={JSON}" in args or (LOG_FORMAT, JSON) in pairwise(args)
    stream = sys.stderr.stream if isinstance(sys.stderr, JsonLog) else sys.stderr
    if asked or stream is not sys.stderr:
        sys.stderr = JsonLog(stream, verb)
