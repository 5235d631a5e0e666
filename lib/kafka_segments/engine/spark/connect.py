"""Sessions of a Spark Connect server: how one is opened, and its failures told in a line."""

import logging
import os
import socket
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, NoReturn
from urllib.parse import urlsplit
from weakref import WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_segments.errors import SparkEndedError, UsageError

_LOG = logging.getLogger(__name__)
_PORT = 15002
_PATIENCE_SECONDS = 10
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
# What Spark says of delta.`path` without Delta's JARs, and with them but without its settings.
_WITHOUT_DELTA = (
    "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY",
    "TABLE_OR_VIEW_NOT_FOUND",
    "DATA_SOURCE_NOT_FOUND",
    "DELTA_CONFIGURE_SPARK_SESSION",
)
_ENDED = ("StatusCode.UNAVAILABLE", "SESSION_CLOSED", "SESSION_CHANGED", "SESSION_NOT_FOUND")
_ON_THIS_MACHINE: WeakSet[SparkSession] = WeakSet()


class _Server(NamedTuple):
    """Where a server listens, and whether that is an address of this machine."""

    name: str
    is_here: bool


def is_connect(spark: SparkSession) -> bool:
    """Tell whether a session is one of Spark Connect: it has no JVM, RDD or SparkContext here."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def is_on_this_machine(spark: SparkSession) -> bool:
    """Tell whether a session's server listens at an address of this machine.

    Behind such an address there can still be another one: a container, the end of a tunnel.
    """
    return spark in _ON_THIS_MACHINE


def connects() -> bool:
    """Tell whether SPARK_REMOTE names a server."""
    return bool(os.environ.get("SPARK_REMOTE"))


@contextmanager
def connect_session(name: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a session of the server that SPARK_REMOTE names; at its end the session is closed.

    ``settings`` hold for this session alone. What the server does not let a client set stays.

    Raises:
        UsageError: SPARK_REMOTE names no server, the client's packages are missing, nobody listens
            there, or the server has no Delta.
        SparkEndedError: the server ended, or closed the session, while it was in use.
    """
    server = _server()
    try:
        spark = SparkSession.builder.appName(name).getOrCreate()
    except ImportError as error:
        raise UsageError(
            "SPARK_REMOTE is set, but the client of Spark Connect is not installed: pip install"
            f" 'kafka-segments[connect]' ({str(error).partition(chr(10))[0]})"
        ) from None
    except PySparkException as error:
        _raise_told(error, server.name)
    if server.is_here:
        _ON_THIS_MACHINE.add(spark)
    try:
        for key, value in settings.items():
            _set(spark, key, value)
        _require_delta(spark, server.name)
        with warnings.catch_warnings():
            # One task orders the rows of a listing, and says so in a plan already.
            warnings.filterwarnings("ignore", "WARN WindowExpression", UserWarning)
            yield spark
    except PySparkException as error:
        _raise_told(error, server.name)
    finally:
        spark.stop()


def _server() -> _Server:
    """Return ``host:port`` of the server, where somebody listens.

    A token may stand in the rest of SPARK_REMOTE, so it is not repeated.
    """
    remote = urlsplit(os.environ["SPARK_REMOTE"])
    if remote.scheme != "sc" or not remote.hostname:
        raise UsageError("SPARK_REMOTE does not name a Spark Connect server: sc://host:15002")
    host, port = remote.hostname, remote.port or _PORT
    is_here = False
    if not any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXIES):
        try:
            with socket.create_connection((host, port), timeout=_PATIENCE_SECONDS) as found:
                is_here = found.getsockname()[0] == found.getpeername()[0]
        except OSError as error:
            raise UsageError(
                f"no Spark Connect server answers at {host}:{port} ({error.strerror or error}):"
                " start it, or unset SPARK_REMOTE to run on this machine"
            ) from None
    return _Server(f"{host}:{port}", is_here)


def _set(spark: SparkSession, key: str, value: str) -> None:
    try:
        spark.conf.set(key, value)
    except PySparkException as error:
        if any(sign in str(error) for sign in _ENDED):
            raise
        _LOG.info("the server does not let %s be set: %s", key, error)


def _require_delta(spark: SparkSession, server: str) -> None:
    """Ask for a table that there is not: with Delta it is Delta that says so."""
    try:
        said = str(spark.sql("EXPLAIN SELECT * FROM delta.`/_no_table`").collect())
    except PySparkException as error:
        said = str(error)
    if any(sign in said for sign in _WITHOUT_DELTA):
        raise UsageError(_no_delta(server))


def _no_delta(server: str) -> str:
    return (
        f"the Spark Connect server at {server} has no Delta: start it with Delta's JARs and"
        " settings, as docs/clusters.md says"
    )


def _raise_told(error: PySparkException, server: str) -> NoReturn:
    """Raise an error of a session; one that ended the session says so."""
    if any(sign in str(error) for sign in _ENDED):
        raise SparkEndedError(
            f"the Spark Connect server at {server} ended, or closed the session",
            "its log says why; what was done is kept, run it again",
        ) from error
    raise error
