"""Releases of Kafka, as ``--kafka-version`` names them."""

import re

from kafka_segments.errors import UsageError

Version = tuple[int, ...]
LATEST = "4.3"
_RELEASE = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){1,3}", re.ASCII)


def parse_version(text: str, *, oldest: str = "0.8") -> Version:
    """Return a release such as ``4.3``, ``3.9.1`` or ``0.10.2.1`` as numbers.

    Raises:
        UsageError: the text names no release, or one before ``oldest``.
    """
    if not _RELEASE.fullmatch(text):
        raise UsageError(f"--kafka-version {text}: a release such as 4.3 or 2.8.1 expected")
    version = tuple(map(int, text.split(".")))
    if version < tuple(map(int, oldest.split("."))):
        raise UsageError(f"--kafka-version {text}: {oldest} and later are known")
    return version
