"""The archive of classes (CDS) by which the JVMs of later commands start some seconds sooner.

Each installation has one, in the user's cache folder. A process in the background makes it after
a command has ended. It fits one release of Spark, one Java and one set of JARs, which its name
tells; where these change, another one is made. A file beside it names the package's folder, so that
the archive can be deleted when the package is gone. Without an archive all works, but starts later.
The JVM checks whether an archive fits, but not whether it is complete: a file beside it has its
length, and an archive with which the JVM does not start is deleted.
"""

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyspark

from kafka_segments.engine.spark.jars import absolute_variable
from kafka_segments.engine.spark.java import find_java, java_version
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.user_folders import cache_folder

SWITCH = "KAFKA_SEGMENTS_CLASS_ARCHIVE"
_OFF = ("off", "0", "false", "no")
_DAY_SECONDS = 24 * 3600
_OF_PACKAGE = ".package"
_PACKAGE = Path(__file__).resolve().parents[2]
_MODULE = "kafka_segments.class_archive"


def is_switched_off() -> bool:
    """Tell whether the user wants no archive to be made or used."""
    return os.environ.get(SWITCH, "").strip().lower() in _OFF


def class_archive(root: Path, jars: Sequence[Path]) -> Path:
    """Return where the archive lies that fits this installation's Spark, Java and JARs."""
    return cache_folder() / f"{_installation(root)}-{_fits(jars)}.jsa"


def _installation(root: Path) -> str:
    return hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:8]


def _fits(jars: Sequence[Path]) -> str:
    """Name what an archive depends on."""
    parts = [pyspark.__version__, str(Path(pyspark.__file__).parent)]
    with contextlib.suppress(UsageError):  # no Java: there will be no session either
        java = find_java().resolve()
        parts += [str(java), str(java_version(java)), str(java.stat().st_mtime_ns)]
    for jar in jars:
        with contextlib.suppress(OSError):
            status = jar.stat()
            parts.append(f"{jar} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def usable_archive(root: Path, jars: Sequence[Path]) -> Path | None:
    """Return the archive that a new JVM can take, None where there is none or none is wanted."""
    if is_switched_off():
        return None
    try:
        archive = class_archive(root, jars)
        size_bytes = int(_length_of(archive).read_text("ascii"))
        return archive if archive.stat().st_size == size_bytes else None
    except (OSError, RuntimeError, ValueError):  # none, one that was cut off, no home folder
        return None


def discard(archive: Path) -> None:
    """Delete an archive, where that can be done: the JVM did not start with it."""
    with contextlib.suppress(OSError):
        archive.unlink()


def _length_of(archive: Path) -> Path:
    """Return the file that says how many bytes an archive has."""
    return archive.with_suffix(".bytes")


def _package_of(archive: Path) -> Path:
    """Return the file that says where the package lies that an archive was made for."""
    return archive.with_suffix(_OF_PACKAGE)


def make_archive_later(root: Path, jars: Sequence[Path]) -> None:
    """Start making the archive where there is none, in a process of its own; return at once.

    The process has no terminal, the least priority and a time limit, and ends by itself. One that
    left no archive is not followed by another for a day, and on machines of CI there is none. What
    stands against all that is no error: the archive only saves time.
    """
    if is_switched_off() or os.environ.get("CI"):
        return
    with contextlib.suppress(OSError, RuntimeError):
        archive = class_archive(root, jars)
        if usable_archive(root, jars) or not _may_try(archive.with_suffix(".tried")):
            return
        subprocess.Popen(  # noqa: S603  our own module
            [sys.executable, "-m", _MODULE, str(root), "--in-background"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=tempfile.gettempdir(),
            env=_environment(),
            start_new_session=True,
        )


def _environment() -> dict[str, str]:
    """Give the process this package, wherever it was imported from."""
    library = str(_PACKAGE.parent)
    before = os.environ.get("PYTHONPATH")
    path = library if not before else os.pathsep.join((library, before))
    return {**os.environ, **absolute_variable(), "PYTHONPATH": path}


def _may_try(note: Path) -> bool:
    """Note that it is tried now; tells whether the last try is long enough ago."""
    note.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if time.time() - note.stat().st_mtime < _DAY_SECONDS:
            return False
    note.touch()
    return True


def put_in_place(written: Path, archive: Path) -> None:
    """Give a whole archive its name; those go that nothing takes any more.

    They are the installation's older ones, and those of installations that are gone.
    """
    _length_of(archive).write_text(str(written.stat().st_size), "ascii")
    _package_of(archive).write_bytes(os.fsencode(_PACKAGE))
    written.replace(archive)
    installation = archive.name.partition("-")[0]
    for other in archive.parent.glob(f"{installation}-*"):
        if other.stem != archive.stem:
            other.unlink(missing_ok=True)
    archive.with_suffix(".tried").unlink(missing_ok=True)
    _remove_abandoned(archive.parent)


def _remove_abandoned(folder: Path) -> None:
    """Delete the archives of packages that are gone.

    One that is younger than a day stays: machines and containers that share the folder do not see
    each other's packages, and would make their archives anew all the time.
    """
    for note in folder.glob(f"*{_OF_PACKAGE}"):
        package = Path(os.fsdecode(note.read_bytes()))
        if not package.exists() and time.time() - note.stat().st_mtime > _DAY_SECONDS:
            for file in folder.glob(f"{note.stem}.*"):
                file.unlink(missing_ok=True)
