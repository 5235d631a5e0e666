"""Releases of Kafka, as ``--kafka-version`` names them: which are known, and which is meant.

A line of releases is known where its rules were read in Kafka's source or asked of its classes:
docs/releases.md says what differs. Of a line that is not known no rule is taken for granted.
"""

import re
from itertools import groupby

from kafka_segments.errors import UsageError

Version = tuple[int, ...]
DEFAULT = "4.3"
DEFAULT_VERSION: Version = (4, 3)
NEWEST = "4.4"
OLDEST_SEARCHED = "0.11"
"""The first release of which it is known how it looks times up."""
_RELEASE = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){1,3}", re.ASCII)
_LINES = (
    *((0, 8, fix) for fix in range(3)),
    (0, 9, 0),
    *((0, 10, fix) for fix in range(3)),
    (0, 11, 0),
    *((1, minor) for minor in range(2)),
    *((2, minor) for minor in range(9)),
    *((3, minor) for minor in range(10)),
    *((4, minor) for minor in range(5)),
)


def parse_version(text: str, *, oldest: str = "0.8") -> Version:
    """Return a release such as ``4.3``, ``3.9.1`` or ``0.10.2.1`` as numbers.

    A later fix of a known line (4.4.9) has the rules of its line. A line that is not known is
    refused, whether it is newer (5.0) or never was (3.10).

    Raises:
        UsageError: the text names no release, one before ``oldest``, or one that is not known.
    """
    if not _RELEASE.fullmatch(text):
        raise UsageError(f"--kafka-version {text}: a release such as 4.3 or 2.8.1 expected")
    version = tuple(map(int, text.split(".")))
    if version < _numbers(oldest):
        raise UsageError(f"--kafka-version {text}: {oldest} and later are known")
    if not any(line[: len(version)] == version[: len(line)] for line in _LINES):
        is_newer = version > _LINES[-1]
        raise UsageError(
            f"--kafka-version {text}: its rules are not known;"
            f" {NEWEST} is the newest release that is: name it to go by its rules"
            if is_newer
            else f"--kafka-version {text}: there is no such release; known are {release_lines()}"
        )
    return version


def release_lines() -> str:
    """Return the lines that are known, as a text: ``1.0 to 1.1, 2.0 to 2.8`` and so on."""
    spans = []
    for _, group in groupby(_LINES, key=lambda line: line[0]):
        lines = [".".join(map(str, line[:2] if line[0] else line)) for line in group]
        spans.append(f"{lines[0]} to {lines[-1]}")
    return ", ".join(spans)


def _numbers(text: str) -> Version:
    return tuple(map(int, text.split(".")))
