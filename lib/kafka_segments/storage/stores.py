"""File systems by URI: one client a bucket or host, credentials from where its own tools look."""

import os
from functools import lru_cache

import pyarrow as pa
from pyarrow import fs

from kafka_segments.errors import UsageError

_S3 = ("s3", "s3a", "s3n")
_OBJECT_STORES = ("s3", "gcs", "abfs")
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
    """Tell whether files appear when their upload ends, and folders are but parts of names."""
    return filesystem.type_name in _OBJECT_STORES


@lru_cache(maxsize=64)
def open_store(root: str) -> tuple[fs.FileSystem, str]:
    """Open the file system of ``scheme://authority``; gives it and that root's path in it.

    Raises:
        UsageError: no file system for this scheme, or a bucket that cannot be found.
    """
    scheme, _, authority = root.partition("://")
    try:
        if scheme in _S3:
            return _open_s3(authority), authority
        filesystem, path = fs.FileSystem.from_uri(root)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        text = str(error).strip() or type(error).__name__
        raise UsageError(f"{root}: {text.splitlines()[0].replace(root, '…')}") from None
    return filesystem, path.rstrip("/")


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
