"""HDFS over HTTP (WebHDFS, HttpFS), as a file system for Arrow; needs no Hadoop on this machine.

A file is uploaded by one request, never appended to. A rename replaces what is there in one step
(``renameoptions=OVERWRITE``), so a reader finds the old file or the new one.

Source: Hadoop's NamenodeWebHdfsMethods and JsonUtil.
"""

import getpass
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pyarrow as pa
import requests
from pyarrow import fs
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from kafka_segments.files.storage.ranges_as_file import RangesAsFile

DEFAULT_PORT = 9870
_TIMEOUT_SECONDS = (10, 60)
_TRIES = Retry(
    total=4, backoff_factor=0.5, status_forcelist=(429, 502, 503, 504), allowed_methods=("GET",)
)
_CONNECTIONS = 32
_IN_MEMORY_BYTES = 8 * 1024 * 1024
_ERRORS: dict[str, type[OSError]] = {
    "FileNotFoundException": FileNotFoundError,
    "AccessControlException": PermissionError,
}
_KINDS = {"FILE": fs.FileType.File, "DIRECTORY": fs.FileType.Directory}


class WebHdfs(fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """Serves ``pyarrow.fs.PyFileSystem`` by the operations of one name node or gateway.

    The user is ``HADOOP_USER_NAME``, else the one of the process, as for Hadoop's own client.
    """

    def __init__(self, authority: str) -> None:
        """Prepare; no request is sent. ``authority``: host, or host:port."""
        has_port = authority.rpartition("]")[2].count(":") == 1
        self._authority = authority if has_port else f"{authority}:{DEFAULT_PORT}"
        self._user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        self._session = requests.Session()
        self._session.mount("http://", HTTPAdapter(pool_maxsize=_CONNECTIONS, max_retries=_TRIES))

    def __eq__(self, other: object) -> bool:
        """Tell whether both speak to the same server."""
        return isinstance(other, WebHdfs) and other._authority == self._authority

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        """Return Hadoop's name of the protocol."""
        return "webhdfs"

    def normalize_path(self, path: str) -> str:
        """Return a path as it is."""
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        """Return what files and folders are, one request for each."""
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """Return what lies in one folder; what lies deeper is left out."""
        if selector.recursive:
            raise NotImplementedError("webhdfs: folders are listed one by one")
        listed = self._ask("GET", selector.base_dir, "LISTSTATUS")["FileStatuses"]["FileStatus"]
        if [status["pathSuffix"] for status in listed] == [""]:
            raise NotADirectoryError(f"{selector.base_dir} is no folder")
        return [_info(f"{selector.base_dir}/{status['pathSuffix']}", status) for status in listed]

    def create_dir(self, path: str, recursive: bool) -> None:
        """Make a folder and those above it."""
        self._ask("PUT", path, "MKDIRS")

    def delete_dir(self, path: str) -> None:
        """Remove a folder with all that is in it."""
        self._remove(path, recursive="true")

    def delete_file(self, path: str) -> None:
        """Remove a file."""
        self._remove(path, recursive="false")

    def move(self, src: str, dest: str) -> None:
        """Rename a file in one step; a file of the new name is replaced."""
        self._call("PUT", src, "RENAME", destination=dest, renameoptions="OVERWRITE")

    def open_input_file(self, path: str) -> pa.PythonFile:
        """Open a file for ranged reads."""
        info = self._info(path)
        if info.type != fs.FileType.File:
            is_there = info.type != fs.FileType.NotFound
            raise (IsADirectoryError if is_there else FileNotFoundError)(f"{path}: no file")
        return pa.PythonFile(RangesAsFile(info.size, partial(self.read_range, path)), mode="r")

    def open_input_stream(self, path: str) -> pa.PythonFile:
        """Open a file for reading."""
        return self.open_input_file(path)

    def open_output_stream(self, path: str, metadata: object) -> pa.PythonFile:
        """Open a file for writing; closing it sends the bytes."""
        return pa.PythonFile(_Upload(self, path), mode="w")

    def _refuse(self, *_: object) -> None:
        raise NotImplementedError("webhdfs: not among what is needed of it")

    copy_file = delete_dir_contents = delete_root_dir_contents = open_append_stream = _refuse

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return a range of a file."""
        return self._call("GET", path, "OPEN", offset=start, length=length).content

    def upload(self, path: str, data: Any) -> None:
        """Write a file; the name node says which data node takes it."""
        answer = self._call("PUT", path, "CREATE", overwrite="true", noredirect="true")
        location = answer.json()["Location"]
        self._checked(self._session.put(location, data=data, timeout=_TIMEOUT_SECONDS))

    def rpc_address(self) -> str:
        """Return the address that the name node tells data nodes: Hadoop's own clients use it.

        Raises:
            OSError: the server is a gateway, no name node.
        """
        answer = self._ask("PUT", "/kafka-segments", "CREATE", noredirect="true")  # makes no file
        location = str(answer["Location"])
        told = parse_qs(urlsplit(location).query).get("namenoderpcaddress")
        if not told:
            raise OSError("no name node, which tables need: give --warehouse hdfs://…")
        return told[0]

    def _info(self, path: str) -> fs.FileInfo:
        try:
            return _info(path, self._ask("GET", path, "GETFILESTATUS")["FileStatus"])
        except FileNotFoundError:
            return fs.FileInfo(path, fs.FileType.NotFound)

    def _remove(self, path: str, *, recursive: str) -> None:
        if not self._ask("DELETE", path, "DELETE", recursive=recursive)["boolean"]:
            raise FileNotFoundError(f"{path}: not there")

    def _ask(self, method: str, path: str, operation: str, **parameters: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._call(method, path, operation, **parameters).json()
        return answer

    def _call(self, method: str, path: str, operation: str, **parameters: Any) -> requests.Response:
        answer = self._session.request(
            method,
            f"http://{self._authority}/webhdfs/v1{quote(path)}",
            params={"op": operation, "user.name": self._user, **parameters},
            timeout=_TIMEOUT_SECONDS,
        )
        return self._checked(answer)

    def _checked(self, answer: requests.Response) -> requests.Response:
        """Return an answer; raise the error that its status tells, whose text is no file."""
        if answer.ok:
            return answer
        if answer.status_code == requests.codes.unauthorized:
            raise PermissionError(
                f"{self._authority} asks for Kerberos, which webhdfs:// does not speak here;"
                " hdfs:// does"
            )
        try:
            told = answer.json()["RemoteException"]
            kind, text = str(told["exception"]), str(told["message"]).partition("\n")[0]
        except (ValueError, KeyError, TypeError):
            kind, text = f"HTTP status {answer.status_code}", str(answer.reason)
        raise _ERRORS.get(kind, OSError)(f"{kind}: {text}")


def _info(path: str, status: dict[str, Any]) -> fs.FileInfo:
    kind = _KINDS.get(status["type"], fs.FileType.Unknown)
    modified = datetime.fromtimestamp(status["modificationTime"] / 1000, UTC)
    size = status["length"] if kind == fs.FileType.File else None
    return fs.FileInfo(path, kind, size=size, mtime=modified)


class _Upload(SpooledTemporaryFile[bytes]):
    def __init__(self, server: WebHdfs, path: str) -> None:
        super().__init__(max_size=_IN_MEMORY_BYTES)
        self._server, self._path = server, path

    def close(self) -> None:
        if self.closed:
            return
        try:
            size = self.tell()
            self.seek(0)
            self._server.upload(self._path, self if size else b"")
        finally:
            super().close()
