"""The JARs that Spark needs besides its own, Delta's and for S3 Hadoop's: which, and where.

They are looked for in this order:

1. the folder that the variable KAFKA_SEGMENTS_JARS names,
2. ``jars/`` of a checkout, where ``make setup`` and ``make jars-s3`` put them,
3. the user's cache folder, where ``jars_fetch`` puts them.

A folder of JARs has the folders ``delta/`` and ``s3/``; that of the variable may hold Delta's JARs
itself. ``jars.sha256`` names the files that fit this release, as ``sha256sum`` printed them.
"""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from kafka_segments.engine.spark.home import spark_home
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.user_folders import cache_folder

VARIABLE = "KAFKA_SEGMENTS_JARS"
DELTA, S3 = "delta", "s3"
_MAIN = {DELTA: "delta-spark_", S3: "hadoop-aws-"}
_PINNED = Path(__file__).with_name("jars.sha256")


@cache
def pinned(kind: str) -> dict[str, str]:
    """Return the SHA-256 of each JAR of a kind, ``delta`` or ``s3``, by its file's name."""
    lines = (line.split() for line in _PINNED.read_text("ascii").splitlines())
    return {
        name.removeprefix(f"{kind}/"): digest
        for digest, name in lines
        if name.startswith(f"{kind}/")
    }


def jars_of(root: Path) -> list[Path]:
    """Return the JARs that a session takes for the installation under ``root``.

    Empty: Delta's are nowhere yet, or lie among Spark's own and those for S3 nowhere.

    Raises:
        UsageError: KAFKA_SEGMENTS_JARS names a folder that has not Delta's JARs.
    """
    delta = find_jars(DELTA, root)
    return [*delta, *find_jars(S3, root)] if delta or spark_has_delta() else []


def find_jars(kind: str, root: Path) -> list[Path]:
    """Return the JARs of a kind from the first place that has them; empty: none has.

    Raises:
        UsageError: as ``jars_of``.
    """
    folders = (_named_folder(), root / "jars" / kind, cached_folder(kind))
    found = (sorted(folder.glob("*.jar")) for folder in _of_kind(kind, *folders))
    return next(filter(None, found), [])


def cached_folder(kind: str) -> Path | None:
    """Return the folder of the user's cache for the JARs of a kind; None: there is no home."""
    main = next(name for name in pinned(kind) if name.startswith(_MAIN[kind]))
    version = main.removesuffix(".jar").rpartition("-")[2]
    try:
        return cache_folder() / "jars" / f"{kind}-{version}"
    except RuntimeError:
        return None


def has_jars(kind: str, folder: Path) -> bool:
    """Tell whether a folder has all JARs of a kind, by their names."""
    return all((folder / name).exists() for name in pinned(kind))


def spark_has_delta() -> bool:
    """Tell whether Delta's JARs of this release lie among Spark's own, as in some images."""
    found = spark_home()
    return found is not None and has_jars(DELTA, found / "jars")


def require_named_jars() -> None:
    """Refuse a folder in KAFKA_SEGMENTS_JARS that has not Delta's JARs, before Spark is started.

    Nothing is asked where another process has started Spark.

    Raises:
        UsageError: as ``jars_of``.
    """
    named = _named_folder()
    started = os.environ.get("PYSPARK_GATEWAY_PORT") or os.environ.get("SPARK_REMOTE")
    if named is not None and not started:
        _checked(named)


def absolute_variable() -> dict[str, str]:
    """Return the variable for a process in another folder; empty where it is not set."""
    folder = _named_folder()
    return {} if folder is None else {VARIABLE: str(folder)}


def _of_kind(kind: str, named: Path | None, *others: Path | None) -> Iterator[Path]:
    if named is not None:
        yield _checked(named) if kind == DELTA else named / kind
    yield from filter(None, others)


def _named_folder() -> Path | None:
    text = os.environ.get(VARIABLE, "")
    return Path(text).expanduser().absolute() if text else None


def _checked(named: Path) -> Path:
    """Return the folder with Delta's JARs: the named one, or ``delta/`` in it."""
    for folder in (named / DELTA, named):
        if has_jars(DELTA, folder):
            return folder
    found = sorted({file.name for place in ("", DELTA) for file in (named / place).glob("*.jar")})
    there = f"it has {', '.join(found)}" if found else "it has no JARs"
    raise UsageError(
        f"{VARIABLE} is {named}, and {there if named.is_dir() else 'it is no folder'}:"
        f" {' and '.join(pinned(DELTA))} are needed there, or in {named / DELTA};"
        f" `python -m kafka_segments.jars {named}` fetches them"
    )
