"""The stores that URIs name: what each can do, and how its file system is opened.

All that the package has to know of a store is a row of ``STORES``. A new one is a row there and,
where Arrow has no file system for it, a module with one (as ``webhdfs``). Arrow is imported where
a store is opened: this machine's disks need none of it.
"""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from kafka_segments.errors import KafkaSegmentsError, OutageError, UsageError
from kafka_segments.extras import require_extra
from kafka_segments.files.storage.outages import is_outage
from kafka_segments.files.storage.uris import root_of, scheme_of, split_uri

if TYPE_CHECKING:
    from pyarrow import fs

REQUESTS_AT_ONCE = 32
_NO_HADOOP = "Unable to load lib"  # libjvm, libhdfs
_MOST_TRIES = 5
_CONNECT_SECONDS = 10
_REQUEST_SECONDS = 60

Opened = tuple["fs.FileSystem", str]
"""A file system, and the path in it that a store's root stands for."""


def _open_by_arrow(root: str, authority: str) -> Opened:
    from pyarrow import fs  # noqa: PLC0415

    filesystem, path = fs.FileSystem.from_uri(root)
    return filesystem, path.rstrip("/")


def _s3_endpoint() -> str | None:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def _open_s3(_: str, bucket: str) -> Opened:
    """Open a bucket; the AWS SDK looks for its credentials."""
    from pyarrow import fs  # noqa: PLC0415

    endpoint = _s3_endpoint()
    given = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    filesystem = fs.S3FileSystem(
        region=given or "us-east-1" if endpoint else fs.resolve_s3_region(bucket),
        endpoint_override=endpoint,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_MOST_TRIES),
        allow_delayed_open=True,  # a small file is one request
    )
    return filesystem, bucket


class RangedObject(Protocol):
    """An object that several threads read by ranges, without Arrow.

    ``size_bytes`` is None until it is known: whoever does not know it asks for the end first.
    """

    size_bytes: int | None

    def end(self, length: int) -> bytes:
        """Return the last bytes of the object, all of them where it has no more than ``length``.

        Raises:
            OSError: the store did not give them.
        """

    def fill(self, position: int, length: int, views: Iterator[memoryview]) -> int:
        """Fill views with a range, as ``FillViews``."""


def _s3_ranges(filesystem: "fs.FileSystem", path: str, size_bytes: int | None) -> RangedObject:
    from kafka_segments.files.storage.s3_ranges import (  # noqa: PLC0415  # imports AWS's library
        S3Object,
        s3_bucket,
    )

    name, _, key = path.partition("/")
    bucket = s3_bucket(name, filesystem.region, _s3_endpoint())
    return S3Object(bucket, key, size_bytes)


def _open_google(_: str, bucket: str) -> Opened:
    """Open a bucket; Google's library looks for its credentials."""
    from pyarrow import fs  # noqa: PLC0415

    emulator = os.environ.get("CLOUD_STORAGE_EMULATOR_ENDPOINT", "")
    filesystem = fs.GcsFileSystem(
        anonymous=bool(emulator),
        endpoint_override=emulator.rpartition("//")[2] or None,
        scheme=scheme_of(emulator) or "https",
        retry_time_limit=timedelta(seconds=_REQUEST_SECONDS),  # Google's own are 15 minutes
    )
    return filesystem, bucket


def _open_webhdfs(_: str, authority: str) -> Opened:
    from pyarrow import fs  # noqa: PLC0415

    from kafka_segments.files.storage.webhdfs import WebHdfs  # noqa: PLC0415  # imports an HTTP client

    return fs.PyFileSystem(WebHdfs(authority)), ""


def _name_node(filesystem: "fs.FileSystem") -> str:
    return root_of("hdfs", filesystem.handler.rpc_address())


@dataclass(frozen=True)
class Store:
    """What a store can do.

    Attributes:
        schemes: Of its URIs. They all mean the same; the first is the usual one.
        filesystem: ``type_name`` of its file system in Arrow.
        open: Opens it, given ``scheme://authority`` and the authority.
        is_local: Python's ``os`` reaches its files by their paths: they can be links, be moved
            and synced, and their folders listed with every name.
        has_locks: A lock file tells that another process is at work.
        has_folders: A folder is made before there is a file in it.
        lists_folders: Arrow's listing of a folder has the folders in it.
        uploads_whole: Nothing of a file is seen before it is closed.
        replaces_when_moved: A rename onto a file takes its place in one step.
        authority_is_bucket: An authority is a bucket's name alone, without a user or a port.
        hadoop_root: Returns the root by which Hadoop's clients, as Spark's, reach it; None: the
            same one.
        ranges: Returns what reads a file by ranges, of a size if that is known; None: Arrow does.
    """

    schemes: tuple[str, ...] = ()
    filesystem: str = ""
    open: Callable[[str, str], Opened] = _open_by_arrow
    is_local: bool = False
    has_locks: bool = False
    has_folders: bool = True
    lists_folders: bool = True
    uploads_whole: bool = False
    replaces_when_moved: bool = False
    authority_is_bucket: bool = False
    hadoop_root: "Callable[[fs.FileSystem], str] | None" = None
    ranges: "Callable[[fs.FileSystem, str, int | None], RangedObject] | None" = None


LOCAL = Store(("",), "local", is_local=True, has_locks=True)
"""The disks of this machine."""
STORES = (
    LOCAL,
    Store(
        ("s3", "s3a", "s3n"),
        "s3",
        _open_s3,
        has_folders=False,
        uploads_whole=True,
        authority_is_bucket=True,
        ranges=_s3_ranges,
    ),
    # Arrow lists those folders alone that have an object of their own, as Arrow makes them.
    Store(
        ("gs", "gcs"),
        "gcs",
        _open_google,
        has_folders=False,
        lists_folders=False,
        uploads_whole=True,
    ),
    # Arrow shows an empty object while one is written.
    Store(("abfss", "abfs"), "abfs", has_folders=False, replaces_when_moved=True),
    # libhdfs renames onto nothing only.
    Store(("hdfs",), "hdfs"),
    # Spark's own client for WebHDFS lacks classes in Hadoop 3.5.
    Store(
        ("webhdfs",),
        "py::webhdfs",
        _open_webhdfs,
        replaces_when_moved=True,
        hadoop_root=_name_node,
    ),
)
_BY_SCHEME = {scheme: store for store in STORES for scheme in store.schemes}
_BY_FILESYSTEM = {store.filesystem: store for store in STORES}
_OTHER = Store()
"""A store that Arrow may know: it is taken to be able to do the least."""


def store_of(uri: str) -> Store:
    """Return the store that a path or URI names; nothing is opened."""
    return _BY_SCHEME.get(scheme_of(uri), _OTHER)


def local_filesystem() -> "fs.FileSystem":
    """Return Arrow's file system for the disks of this machine."""
    from pyarrow import fs  # noqa: PLC0415

    return fs.LocalFileSystem()


def read_errors() -> tuple[type[Exception], ...]:
    """Return what reading raises: Python's errors, and Arrow's where anything has imported it."""
    arrow = sys.modules.get("pyarrow")
    return (OSError,) if arrow is None else (OSError, arrow.ArrowException)


def store_behind(filesystem: "fs.FileSystem") -> Store:
    """Return the store that a file system of Arrow's is for."""
    return _BY_FILESYSTEM.get(str(filesystem.type_name), _OTHER)


def checked_root(uri: str) -> tuple[str, str]:
    """Return ``scheme://authority`` and the path of a URI.

    Raises:
        UsageError: it has credentials; they are not repeated.
    """
    scheme, authority, path = split_uri(uri)
    is_bucket = store_of(uri).authority_is_bucket
    host, _, port = authority.rpartition(":")
    name = host if host and port.isdecimal() and not is_bucket else authority
    if ":" in name.partition("[")[0] or (is_bucket and "@" in authority):
        raise UsageError(
            f"{root_of(scheme, '…')}: credentials in a URI would stand in tables and logs; they"
            " are taken from the environment, as docs/storage.md says"
        )
    return root_of(scheme, authority), path


@lru_cache(maxsize=64)
def open_store(root: str) -> Opened:
    """Open the file system of ``scheme://authority``, one client for each.

    Raises:
        UsageError: there is no file system for this scheme, or the bucket cannot be found; what
            reads stores is not installed.
        OutageError: the store does not answer.
    """
    require_extra("stores", root)
    import pyarrow as pa  # noqa: PLC0415

    if pa.io_thread_count() < REQUESTS_AT_ONCE:  # Arrow's own 8 wait most of their time
        pa.set_io_thread_count(REQUESTS_AT_ONCE)
    authority = split_uri(root)[1]
    try:
        return store_of(root).open(root, authority)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        text = (str(error).strip() or type(error).__name__).splitlines()[0].replace(root, "…")
        if text.startswith(_NO_HADOOP):
            text += (
                ": hdfs:// needs Hadoop's libhdfs and a Java on each machine (HADOOP_HOME,"
                f" JAVA_HOME, CLASSPATH); webhdfs://{authority.partition(':')[0]}:9870 reaches the"
                " same files without them"
            )
        raise _refusal(root, text, error) from None


def _refusal(root: str, text: str, error: Exception) -> KafkaSegmentsError:
    return OutageError(root, text) if is_outage(error) else UsageError(f"{root}: {text}")


def hadoop_uri(uri: str) -> str:
    """Return the URI by which Hadoop's own clients, as Spark's, reach what lies at a URI.

    Raises:
        UsageError: the store must be asked for it, and does not tell.
        OutageError: it does not answer.
    """
    hadoop_root = store_of(uri).hadoop_root
    if hadoop_root is None:
        return uri
    root, path = checked_root(uri)
    filesystem, _ = open_store(root)
    try:
        return f"{hadoop_root(filesystem)}/{path}"
    except OSError as error:
        raise _refusal(root, str(error).partition("\n")[0], error) from None


def by_usual_scheme(uri: str) -> str:
    """Return a URI by the usual scheme of its store, so that those of one place are equal."""
    schemes, (_, authority, path) = store_of(uri).schemes, split_uri(uri)
    if not schemes or scheme_of(uri) == schemes[0]:
        return uri
    root = root_of(schemes[0], authority)
    return f"{root}/{path}" if path else root
