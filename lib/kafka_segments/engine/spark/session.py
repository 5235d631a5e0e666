"""The Spark session of the commands: Delta switched on, small settings for local mode."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from kafka_segments.engine.spark.archive import (
    archive_options,
    make_archive_later,
    usable_archive,
)
from kafka_segments.engine.spark.connect import connect_session, connects
from kafka_segments.engine.spark.jars import jars_of
from kafka_segments.engine.spark.jars_fetch import ready_jars
from kafka_segments.engine.spark.java import require_java
from kafka_segments.engine.spark.jvm_end import jvm_end
from kafka_segments.engine.spark.jvm_lines import JvmLines
from kafka_segments.engine.spark.jvm_start import NO_START, start_error
from kafka_segments.engine.spark.memory import heap_ceiling
from kafka_segments.engine.spark.parallelism import default_parallelism
from kafka_segments.engine.spark.scratch import scratch_settings
from kafka_segments.engine.spark.site_settings import MEANING, WITHOUT_STRANGERS, site_error
from kafka_segments.engine.spark.surroundings import (
    LOOPBACK,
    allow_open_files,
    require_current_folder,
    require_temporary_folder,
    without_strangers,
)
from kafka_segments.engine.workarounds.jvm import has_jvm, let_jvm_remove
from kafka_segments.errors import SparkEndedError
from kafka_segments.files.storage.scratch import scratch_folder

Settings = dict[str, bool | float | int | str | None]
_LOGGING = Path(__file__).with_name("log4j2.properties")
# Where in Python a column was made, told to the JVM for each: half of all calls to it.
_CALL_SITES = "spark.python.sql.dataFrameDebugging.enabled"
# A flipped bit in a page of a Parquet file fails the query: Spark writes checksums of pages, and
# by default does not look at them.
_PAGE_CHECKSUMS = "spark.hadoop.parquet.page.verify-checksum.enabled"
# The JVM interprets a method of more bytes for ever. Spark's own limit is eight times as high: the
# decisions' expressions, compiled into one method, take two to four times as long.
_LARGEST_METHOD = "spark.sql.codegen.hugeMethodLimit"
_ALWAYS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    **MEANING,
    _CALL_SITES: "false",
    _PAGE_CHECKSUMS: "true",
    _LARGEST_METHOD: "8000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
}
# What a client of Spark Connect may set for its session.
_NO_CLIENTS = (
    *("spark.sql.extensions", "spark.sql.catalog.spark_catalog"),
    *(_CALL_SITES, _PAGE_CHECKSUMS),
)
_OF_A_CLIENT = {key: value for key, value in _ALWAYS.items() if key not in _NO_CLIENTS}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# A run is over before the JVM's optimizing compiler has paid for itself. Without that
# compiler the JVM keeps 48 MiB for code, which Spark fills in a minute.
SHORT_RUN_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",  # a ceiling; where there is little memory, ``heap_ceiling``
    # Spark's own choice is 32 MiB in such a heap, and the smallest broadcast join takes one.
    "spark.buffer.pageSize": "4m",
    # Nobody else connects to it: no name of this machine is needed.
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    # Between the JVM and Python's workers: over TCP each task waits for late acknowledgements.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "kafka_segments.engine.spark.worker_daemon",
    # Quiet logs.
    _JAVA_OPTIONS: f"{SHORT_RUN_OPTIONS} -Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    # VACUUM lists with as many tasks as this, even where there is one folder.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(os.cpu_count() or 2),
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.autoBroadcastJoinThreshold": "64m",
    # Planning again after each stage costs more than it saves on small data.
    "spark.sql.adaptive.enabled": "false",
}
_UNKNOWN = (
    "the lines above say why; without any it was killed (see `dmesg` for want of memory), or"
    " --verbose shows more"
)
_S3A_PATIENCE = {
    # Hadoop's own values make a read of one object wait for a quarter of an hour until it fails.
    # Answers that the store refuses because it is asked too often have settings of their own.
    "spark.hadoop.fs.s3a.attempts.maximum": "3",
    "spark.hadoop.fs.s3a.retry.limit": "3",
    "spark.hadoop.fs.s3a.connection.establish.timeout": "10s",
    "spark.hadoop.fs.s3a.connection.timeout": "30s",
    # Where a body breaks off, only this kind of stream asks again, and it only in plain reads:
    # neither Hadoop 3.5's own choice, "analytics", nor a vectored read does.
    "spark.hadoop.fs.s3a.input.stream.type": "classic",
    "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
}
_SHUFFLE = "spark.sql.shuffle.partitions"
_LEAST_SHUFFLE, _SPARKS_SHUFFLE = 16, 200


def s3_settings() -> dict[str, str]:
    """Return Hadoop's settings for S3 by the variables that AWS's own tools read.

    Credentials are not among them: Hadoop finds those itself, in the same variables first.
    """
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    settings = {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        **_S3A_PATIENCE,
    }
    if endpoint:
        settings |= {
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
    if region or endpoint:
        settings["spark.hadoop.fs.s3a.endpoint.region"] = region or "us-east-1"
    return settings


def _jar_settings(jars: Sequence[Path], archive: Path | None) -> dict[str, str]:
    """Return the JARs; those of an archive are on the JVM's own class path, with no others'."""
    if not jars:
        return {}
    if archive is None:
        return {"spark.jars": ",".join(map(str, jars))}
    return {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}


def _java_options(archive: Path | None, dumped: Path | None, *, is_long: bool) -> str:
    """Return the JVM's options: what it compiles with, what it says, where its classes are."""
    options = _LOCAL[_JAVA_OPTIONS]
    if is_long:
        options = options.replace(SHORT_RUN_OPTIONS, "").strip()
    if dumped is not None:
        return f'{options} -XX:ArchiveClassesAtExit="{dumped}" -Xlog:cds=off -Xlog:cds+dynamic=off'
    return options if archive is None else f"{options} {archive_options(archive)}"


def suit_small_data(spark: SparkSession) -> None:
    """Keep Spark and Delta from splitting few rows into hundreds of tasks, where nobody set that.

    Two tasks a core shuffle: at least 16, as executors may come late, at most Spark's own 200.
    """
    shuffle = max(_LEAST_SHUFFLE, min(2 * default_parallelism(spark), _SPARKS_SHUFFLE))
    suited = {
        _SHUFFLE: str(shuffle),
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(shuffle),
        "spark.databricks.delta.snapshotPartitions": "4",
    }
    for key, value in suited.items():
        if spark.conf.get(key, None) is None:
            spark.conf.set(key, value)


@contextmanager
def spark_session(
    name: str,
    *,
    root: Path,
    master: str | None = None,
    dump_classes: Path | None = None,
    is_long: bool = False,
) -> Iterator[SparkSession]:
    """Yield the running session (spark-submit's, a notebook's), a server's, or one of our own.

    Where SPARK_REMOTE names a Spark Connect server, the session is one there.
    A session of our own runs on ``master``, a local one, by default ``local[*]``, with the JARs
    that ``ready_jars`` finds for ``root`` or fetches; it is stopped at the end. spark-submit's has
    its own settings, and ours for small data where they do not say.
    Where there is no archive of its classes, one is made once the session has ended.
    ``dump_classes``: where its JVM writes such an archive when it ends. ``is_long``: the session
    lives for minutes, so that the JVM's second compiler pays.

    Raises:
        UsageError: the server cannot be worked with (``connect_session``), or Spark's JVM does not
            start by a setting or limit of this machine (``start_cause``).
        SparkEndedError: Spark's JVM did not start for another reason, or it or the server ended
            while in use.
    """
    running = _running()
    if running is not None:
        yield running
        return
    if connects():
        with connect_session(name, _OF_A_CLIENT) as spark:
            suit_small_data(spark)
            yield spark
        return
    require_java()
    require_temporary_folder()
    require_current_folder()
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    allow_open_files()
    with closing(JvmLines()) as jvm_lines:
        if submitted:
            spark = _start(name, {**_ALWAYS}, jvm_lines)
        else:
            own = partial(_own_settings, root, master, dump_classes, is_long=is_long)
            with without_strangers():
                spark = _start_own(name, root, own, jvm_lines)
        with _stopped_at_its_end(spark, jvm_lines):
            if submitted:
                suit_small_data(spark)
            else:
                let_jvm_remove(spark, scratch_folder())
            yield spark
    if not submitted and dump_classes is None:
        make_archive_later(root, jars_of(root))


def _running() -> SparkSession | None:
    """Return this process's session, also to a thread that has not used it yet.

    Each thread of the JVM knows an active session; after Ctrl-C a new one serves this thread.
    """
    active = SparkSession.getActiveSession()
    if active is not None or connects() or not has_jvm():
        return active
    return SparkSession.builder.getOrCreate()


def _own_settings(
    root: Path, master: str | None, dump_classes: Path | None, *, is_long: bool
) -> Settings:
    """Return the settings of a session that nobody else has set anything for."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # another one has not this package
    jars = ready_jars(root)
    archive = None if dump_classes else usable_archive(root, jars)
    options = _java_options(archive, dump_classes, is_long=is_long)
    return {
        **_ALWAYS,
        "spark.master": master or "local[*]",
        **_LOCAL,
        "spark.driver.memory": heap_ceiling(),
        **WITHOUT_STRANGERS,
        **scratch_settings(scratch_folder()),
        **s3_settings(),
        **_jar_settings(jars, dump_classes or archive),
        _JAVA_OPTIONS: f'{options} -Djava.io.tmpdir="{scratch_folder()}"',
    }


def _start_own(
    name: str, root: Path, own_settings: Callable[[], Settings], jvm_lines: JvmLines
) -> SparkSession:
    """Start a session of our own; where the JVM does not start with its archive, without one."""
    try:
        return _start(name, own_settings(), jvm_lines)
    except SparkEndedError as error:
        archive = usable_archive(root, jars_of(root))
        if archive is None or not archive.exists() or error.is_understood:
            raise
        with suppress(OSError):
            archive.unlink()
    return _start(name, own_settings(), jvm_lines)


def _start(name: str, settings: Settings, jvm_lines: JvmLines) -> SparkSession:
    try:
        with jvm_lines.kept():
            return SparkSession.builder.appName(name).config(map=settings).getOrCreate()
    except (PySparkRuntimeError, Py4JError, OSError) as error:
        said = f"{jvm_lines.text()}\n{error}"
        told = start_error(said) or site_error(said)
        if told is not None:
            raise told from None
        if not isinstance(error, PySparkRuntimeError):
            raise
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        jvm_lines.show()
        raise SparkEndedError(NO_START, _UNKNOWN) from None


@contextmanager
def _stopped_at_its_end(spark: SparkSession, jvm_lines: JvmLines) -> Iterator[None]:
    """Stop a session at its end; where its JVM ended before it, say so."""
    try:
        yield
    except Exception as error:
        ended = jvm_end(spark, error)
        if ended is None:
            _stop(spark)
            told = site_error(str(error)) if isinstance(error, Py4JError) else None
            if told is not None:
                raise told from error
            raise
        jvm_lines.show()
        raise ended from error
    except BaseException:
        _stop(spark)
        raise
    else:
        _stop(spark)


def _stop(spark: SparkSession) -> None:
    """Stop a session whose work is over; what goes wrong while the JVM stops is not told.

    At a signal the JVM can end while it stops what runs; what is left of it ends with this process.
    """
    with suppress(Exception):
        spark.stop()
