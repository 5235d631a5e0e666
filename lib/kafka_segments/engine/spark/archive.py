"""The archive of classes (CDS) by which the JVMs of later commands start some seconds sooner.

Java 19 and later keep it themselves: a JVM that finds none, or one that does not fit any more,
writes it as it ends. For Java 17 and 18 a process in the background makes it, once
(``kafka_segments.class_archive``). Its name tells the installation, Spark, Java and JARs that it
fits. Without an archive all works, but starts later.
"""

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyspark

from kafka_segments.engine.spark.jars import absolute_variable
from kafka_segments.engine.spark.java import feature_release, find_java, java_version
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.user_folders import cache_folder

SWITCH = "KAFKA_SEGMENTS_CLASS_ARCHIVE"
_OFF = ("off", "0", "false", "no")
_KEEPS_ITS_OWN = 19  # the first Java with AutoCreateSharedArchive: JDK-8261455
_PACKAGE = Path(__file__).resolve().parents[2]


def is_switched_off() -> bool:
    """Tell whether the user wants no archive to be made or used."""
    return os.environ.get(SWITCH, "").strip().lower() in _OFF


def keeps_its_own() -> bool:
    """Tell whether the Java that Spark takes makes its archive by itself."""
    try:
        version = java_version(find_java())
    except UsageError:  # no Java: there will be no session either
        return False
    return version is not None and feature_release(version) >= _KEEPS_ITS_OWN


def class_archive(root: Path, jars: Sequence[Path]) -> Path:
    """Return where the archive lies that fits this installation's Spark, Java and JARs.

    Raises:
        OSError: a JAR is gone.
        RuntimeError: there is no home folder.
    """
    parts = [pyspark.__version__, str(Path(pyspark.__file__).parent)]
    with contextlib.suppress(UsageError):
        java = find_java().resolve()
        parts += [str(java), str(java_version(java)), str(java.stat().st_mtime_ns)]
    for jar in jars:
        status = jar.stat()
        parts.append(f"{jar} {status.st_size} {status.st_mtime_ns}")
    texts = (str(root.resolve()), "\n".join(parts))
    installation, fits = (hashlib.sha256(text.encode()).hexdigest() for text in texts)
    return cache_folder() / f"{installation[:8]}-{fits[:16]}.jsa"


def usable_archive(root: Path, jars: Sequence[Path]) -> Path | None:
    """Return the archive that a new JVM is to name, None where there is none or none is wanted.

    A Java that keeps its own archive is given its name before the file is there; in CI none is
    made.
    """
    with contextlib.suppress(OSError, RuntimeError):
        if not is_switched_off():
            archive = class_archive(root, jars)
            if archive.exists():
                return archive
            if keeps_its_own() and not os.environ.get("CI"):
                archive.parent.mkdir(parents=True, exist_ok=True)
                return archive
    return None


def archive_options(archive: Path) -> str:
    """Return the options of a JVM that takes an archive; it looks itself whether that fits."""
    keeps = "-XX:+AutoCreateSharedArchive " if keeps_its_own() else ""
    return f'{keeps}-XX:SharedArchiveFile="{archive}" -Xlog:cds=off -Xlog:cds+dynamic=off'


def make_archive_later(root: Path, jars: Sequence[Path]) -> None:
    """Start making the archive where there is none, in a process that nobody waits for.

    It is tried once, and never on machines of CI or where Java makes it.
    """
    if is_switched_off() or keeps_its_own() or os.environ.get("CI"):
        return
    with contextlib.suppress(OSError, RuntimeError):
        archive = class_archive(root, jars)
        if archive.exists():
            return
        archive.parent.mkdir(parents=True, exist_ok=True)
        archive.with_suffix(".tried").touch(exist_ok=False)
        library = os.pathsep.join([str(_PACKAGE.parent), os.environ.get("PYTHONPATH", "")])
        subprocess.Popen(  # noqa: S603  our own module
            ["nice", "-n", "19", sys.executable, "-m", "kafka_segments.class_archive", str(root)],  # noqa: S607
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=tempfile.gettempdir(),
            env={**os.environ, **absolute_variable(), "PYTHONPATH": library.strip(os.pathsep)},
            start_new_session=True,
        )
