"""Buckets of an S3 server that tests start: objects put, and read back, by Arrow's client."""

from pathlib import Path

from pyarrow import fs

ACCESS_KEY, SECRET_KEY = "AKIATESTACCESSKEY", "a-secret/that+nobody=sees"
_PATIENCE_SECONDS = 120


class S3Files:
    """The buckets of a server.

    Attributes:
        endpoint: Its URL.
        files: Arrow's file system of its buckets.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.files = fs.S3FileSystem(
            access_key=ACCESS_KEY,
            secret_key=SECRET_KEY,
            region="us-east-1",
            endpoint_override=endpoint,
            allow_bucket_creation=True,
            connect_timeout=_PATIENCE_SECONDS,
            request_timeout=_PATIENCE_SECONDS,  # moto imports S3 at the first; 3 are pyarrow's own
        )

    def put_folder(self, folder: Path, key: str) -> None:
        """Upload a folder's files, each under its path below ``key`` (bucket and prefix)."""
        self.files.create_dir(key.partition("/")[0])
        for file in folder.rglob("*"):
            if file.is_file():
                self.put(f"{key}/{file.relative_to(folder)}", file.read_bytes())

    def put(self, key: str, data: bytes) -> None:
        with self.files.open_output_stream(key) as stream:
            stream.write(data)

    def objects(self, key: str) -> dict[str, bytes]:
        """Give what lies below a bucket and prefix, by the rest of its name."""
        found = self.files.get_file_info(fs.FileSelector(key, recursive=True, allow_not_found=True))
        return {
            info.path.removeprefix(f"{key}/"): self.files.open_input_file(info.path).read()
            for info in found
            if info.is_file
        }
