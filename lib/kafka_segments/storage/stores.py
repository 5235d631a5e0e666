"""File systems by URI: one client a bucket or host, credentials from where its own tools look."""

import os
from datetime import timedelta
from functools import lru_cache

import pyarrow as pa
from pyarrow import fs

from kafka_segments.errors import UsageError

_S3 = ("s3", "s3a", "s3n")
_GOOGLE = ("gs", "gcs")
_WEBHDFS = "webhdfs"
_OBJECT_STORES = ("s3", "gcs", "abfs")
_UPLOADS_WHOLE = ("s3", "gcs")
_REPLACES = ("abfs", f"py::{_WEBHDFS}")
_NO_HADOOP = "Unable to load lib"  # libjvm, libhdfs
REQUESTS_AT_ONCE = 32
_MOST_TRIES = 5
_CONNECT_SECONDS = 10
_REQUEST_SECONDS = 60


def split_uri(uri: str) -> tuple[str, str]:
    """Split a URI into ``scheme://authority`` and the path, which is taken as it stands.

    Raises:
        UsageError: credentials in it; they are not repeated.
    """
    scheme, _, rest = uri.partition("://")
    authority, _, path = rest.partition("/")
    host, _, port = authority.rpartition(":")
    name = host if host and port.isdecimal() and scheme not in _S3 else authority
    if ":" in name.partition("[")[0] or (scheme in _S3 and "@" in authority):
        raise UsageError(
            f"{scheme}://…: credentials in a URI would stand in tables and logs; they are taken"
            " from the environment, as docs/storage.md says"
        )
    return f"{scheme}://{authority}", path


def is_object_store(filesystem: fs.FileSystem) -> bool:
    """Tell whether folders are but parts of names."""
    return filesystem.type_name in _OBJECT_STORES


def lists_files_only(filesystem: fs.FileSystem) -> bool:
    """Tell whether Arrow's listing of one folder leaves out the folders in it.

    On Google's store it shows those alone that have an object of their own, as Arrow makes them.
    """
    return str(filesystem.type_name) == "gcs"


def uploads_whole(filesystem: fs.FileSystem) -> bool:
    """Tell whether nothing shows of a file before it is closed."""
    return filesystem.type_name in _UPLOADS_WHOLE


def replaces_when_moved(filesystem: fs.FileSystem) -> bool:
    """Tell whether a rename onto a file takes its place in one step."""
    return filesystem.type_name in _REPLACES


@lru_cache(maxsize=64)
def open_store(root: str) -> tuple[fs.FileSystem, str]:
    """Open the file system of ``scheme://authority``; gives it and that root's path in it.

    Raises:
        UsageError: no file system for this scheme, or a bucket that cannot be found.
    """
    scheme, _, authority = root.partition("://")
    if pa.io_thread_count() < REQUESTS_AT_ONCE:  # Arrow's own 8 wait most of their time
        pa.set_io_thread_count(REQUESTS_AT_ONCE)
    try:
        if scheme in _S3:
            return _open_s3(authority), authority
        if scheme in _GOOGLE:
            return _open_google(), authority
        if scheme == _WEBHDFS:
            return _open_webhdfs(authority), ""
        filesystem, path = fs.FileSystem.from_uri(root)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        text = (str(error).strip() or type(error).__name__).splitlines()[0].replace(root, "…")
        if text.startswith(_NO_HADOOP):
            text += (
                ": hdfs:// needs Hadoop's libhdfs and a Java on each machine (HADOOP_HOME,"
                f" JAVA_HOME, CLASSPATH); webhdfs://{authority.partition(':')[0]}:9870 reaches the"
                " same files without them"
            )
        raise UsageError(f"{root}: {text}") from None
    return filesystem, path.rstrip("/")


def hadoop_uri(uri: str) -> str:
    """Give the URI by which Hadoop's own clients, as Spark's, reach what lies at a URI.

    ``webhdfs://`` becomes ``hdfs://``: Spark's own client for WebHDFS lacks classes in Hadoop 3.5.

    Raises:
        UsageError: the name node cannot be asked for its address, or does not tell it.
    """
    if not uri.startswith(f"{_WEBHDFS}://"):
        return uri
    root, path = split_uri(uri)
    filesystem, _ = open_store(root)
    try:
        return f"hdfs://{filesystem.handler.rpc_address()}/{path}"
    except OSError as error:
        raise UsageError(f"{root}: {str(error).partition(chr(10))[0]}") from None


def _open_webhdfs(authority: str) -> fs.PyFileSystem:
    from kafka_segments.storage.webhdfs import WebHdfs  # noqa: PLC0415  # the one who needs HTTP

    return fs.PyFileSystem(WebHdfs(authority))


def _open_google() -> fs.GcsFileSystem:
    """Open Google's store; its credentials come from its library's own chain."""
    emulator = os.environ.get("CLOUD_STORAGE_EMULATOR_ENDPOINT", "")
    scheme, _, authority = emulator.rpartition("://")
    return fs.GcsFileSystem(
        anonymous=bool(emulator),
        endpoint_override=authority or None,
        scheme=scheme or "https",
        retry_time_limit=timedelta(seconds=_REQUEST_SECONDS),  # Google's own are 15 minutes
    )


def _open_s3(bucket: str) -> fs.S3FileSystem:
    """Open a bucket; its credentials come from the AWS SDK's own chain."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    given = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return fs.S3FileSystem(
        region=given or "us-east-1" if endpoint else fs.resolve_s3_region(bucket),
        endpoint_override=endpoint,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_MOST_TRIES),
        allow_delayed_open=True,  # a small file is one request
    )
