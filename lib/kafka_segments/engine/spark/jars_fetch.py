"""Fetch the JARs that Spark lacks from Maven's central repository, once, and check each.

Maven is asked, which knows a site's own mirrors by its settings; where it is not there or fails,
Spark's Ivy. What either prints is kept aside. The files appear whole or not at all, and only if
they are those of ``jars.sha256``.
"""

import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from kafka_segments.engine.spark.home import spark_home
from kafka_segments.engine.spark.jars import (
    DELTA,
    VARIABLE,
    cached_folder,
    jars_of,
    pinned,
    spark_has_delta,
)
from kafka_segments.errors import KafkaSegmentsError, UsageError
from kafka_segments.files.storage.durable_files import name_folder
from kafka_segments.files.storage.scratch import scratch_below

_LOG = logging.getLogger(__name__)
_POM = Path(__file__).with_name("pom.xml")
_MOST_SECONDS = 600
_GROUP = "io.delta"
# What Delta's own POM names besides: Spark has it, or only tables need it that we do not have.
_NOT_NEEDED = (
    *("com.*:*", "commons-*:*", "io.airlift:*", "io.unitycatalog:*", "javax.*:*", "org.*:*"),
    f"{_GROUP}:delta-kernel*",
)
_WHAT_TO_DO = (
    "On a machine with a network and the same release of ours run `python -m kafka_segments.jars"
    f" FOLDER`, copy the folder here, and set {VARIABLE} to it"
)
_SIGNS = ("[ERROR]", "unresolved dependency", "Error", "Exception", "rror:")
_END_SAID = 120  # of a long line its beginning and its end: a cause stands last
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class _NotFetchedError(KafkaSegmentsError):
    """One way to fetch JARs failed; another may not."""


def ready_jars(root: Path) -> list[Path]:
    """Return the JARs that a session takes; Delta's are fetched where there are none yet.

    Raises:
        UsageError: as ``jars_of`` and ``fetch_jars``.
    """
    if spark_has_delta() or jars_of(root):
        return jars_of(root)
    folder = cached_folder(DELTA)
    if folder is None:
        raise UsageError(f"there is no home folder for Delta's JARs: {_WHAT_TO_DO}")
    fetch_jars(DELTA, folder)
    return jars_of(root)


def fetch_jars(kind: str, folder: Path) -> None:
    """Fetch the JARs of a kind into a folder, and say so in one line on stderr.

    The folder is made or replaced once all of them are there.

    Raises:
        UsageError: they could not be fetched, or are not those that this release was tried with.
    """
    what = "Delta's JARs" if kind == DELTA else "the JARs for tables on S3"
    sys.stderr.write(f"kafka-segments: fetching {what} for Spark into {folder}, once … ")
    sys.stderr.flush()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with scratch_below(folder.parent) as scratch:
            found = _fetched(kind, scratch)
            before = found.with_name("before")  # another process may have fetched them meanwhile
            name_folder(found, folder, replaced=before, is_synced=False)
    except OSError as error:
        sys.stderr.write("failed\n")
        raise UsageError(f"{folder}: {error}") from None
    except BaseException:
        sys.stderr.write("failed\n")
        raise
    sys.stderr.write("done\n")


def _fetched(kind: str, scratch: Path) -> Path:
    """Return a folder with the JARs, by the first way that leads to them."""
    failures = []
    ways: tuple[Callable[[str, Path], Path], ...] = (_by_maven, _by_ivy)
    for way in ways[: 2 if kind == DELTA else 1]:
        try:
            found = way(kind, scratch / way.__name__)
            _check(kind, found)
        except _NotFetchedError as error:
            failures.append(str(error))
        else:
            return found
    raise UsageError(
        f"JARs are missing and could not be fetched: {_names(kind)}. {_WHAT_TO_DO}"
        f" ({'; '.join(failures)}; --verbose shows all)"
    )


def _names(kind: str) -> str:
    names = list(pinned(kind))
    return " and ".join(names) if len(names) == 2 else f"{names[0]} and {len(names) - 1} others"


def _by_maven(kind: str, scratch: Path) -> Path:
    maven = shutil.which("mvn")
    if maven is None:
        raise _NotFetchedError("mvn is not in PATH")
    profile = [] if kind == DELTA else [f"-P{kind}"]
    command: list[str | Path] = [
        maven,
        "-q",
        "-B",
        "-f",
        _POM,
        f"-Djars.folder={scratch}",
        f"-Ddelta.version={version('delta-spark')}",
        *profile,
    ]
    _run("mvn", [*command, "generate-resources"], scratch, {})
    return scratch / kind


def _by_ivy(kind: str, scratch: Path) -> Path:
    """Let spark-submit resolve the JARs for a program that does nothing."""
    home = spark_home()
    if home is None or not (home / "bin" / "spark-submit").exists():
        raise _NotFetchedError("Spark has no spark-submit")
    nothing, found = scratch / "nothing.py", scratch / kind
    found.mkdir(parents=True)
    nothing.touch()
    settings = {
        "spark.master": "local[1]",
        "spark.jars.ivy": str(scratch),
        "spark.jars.packages": ",".join(map(_coordinates, pinned(kind))),
        "spark.jars.excludes": ",".join(_NOT_NEEDED),
    }
    options = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
    command: list[str | Path] = [home / "bin" / "spark-submit", *options, nothing]
    _run("Spark's Ivy", command, scratch, {"PYSPARK_PYTHON": sys.executable})
    for jar in (scratch / "jars").glob(f"{_GROUP}_*.jar"):
        jar.replace(found / jar.name.removeprefix(f"{_GROUP}_"))
    return found


def _coordinates(name: str) -> str:
    artifact, _, version = name.removesuffix(".jar").rpartition("-")
    return f"{_GROUP}:{artifact}:{version}"


def _run(
    name: str, command: Sequence[str | Path], scratch: Path, variables: Mapping[str, str]
) -> None:
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(  # noqa: S603  programs that the user has installed
            command,
            cwd=scratch,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _NotFetchedError(f"{name} was not done in {_MOST_SECONDS} s") from None
    except OSError as error:
        raise _NotFetchedError(f"{name}: {error}") from None
    said = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        _LOG.info("%s ended with status %s:\n%s", name, done.returncode, said)
        raise _NotFetchedError(f"{name}: {_cause(said) or f'status {done.returncode}'}")


def _cause(said: str) -> str:
    """Return the line of a program's output that says why it failed."""
    lines = [line.strip() for line in _COLOUR.sub("", said).splitlines() if line.strip()]
    telling = (line for line in lines if any(sign in line for sign in _SIGNS))
    line = next(telling, lines[-1] if lines else "")
    return line if len(line) <= 2 * _END_SAID else f"{line[:_END_SAID]} … {line[-_END_SAID:]}"


def _check(kind: str, folder: Path) -> None:
    """Refuse files that are not byte for byte those that this release was tried with."""
    for name, expected in pinned(kind).items():
        if not (folder / name).exists():
            raise _NotFetchedError(f"{name} is not among what was fetched")
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise _NotFetchedError(f"{name} has the SHA-256 {found}, {expected} expected")
