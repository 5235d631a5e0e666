"""Publish a segment's index files: each appears whole, and what it replaces is kept."""

import errno
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from kafka_segments.files.changes.backups import is_there
from kafka_segments.files.storage.durable_files import create_empty
from kafka_segments.files.storage.files import Place, list_folder, place
from kafka_segments.files.storage.local_file import Kind, LocalFile, local_kind
from kafka_segments.files.storage.publishing import make_folder, publish
from kafka_segments.files.storage.read_ahead import read_range
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.text.names import file_name

MOST_INDEX_BYTES = 256 * 1024 * 1024
"""Larger files beside segments are not read: no broker writes such index files."""


class IndexOutput(NamedTuple):
    """Where index files go.

    ``index_dir`` is their root; None: they go beside the segments. A file that is replaced by other
    bytes is first copied to ``set_aside``, under the same relative path.
    """

    index_dir: str | None
    set_aside: str
    folders: dict[str, str]
    """Folder of each source below ``index_dir``: empty for a single source."""

    def folder(self, source: str, relative_path: str) -> str:
        """Return the URI of the folder that the files of a partition go to."""
        if self.index_dir is None:
            return join_uri(source, relative_path)
        return join_uri(self.index_dir, self.folders[source], relative_path)

    def set_aside_folder(self, source: str, relative_path: str) -> str:
        """Return the URI of the folder that replaced files of a partition go to."""
        return join_uri(self.set_aside, self.folders[source], relative_path)


class IndexPublisher:
    """Writes the index files of one segment after another."""

    def __init__(self, output: IndexOutput) -> None:
        self._output = output
        self._made: set[str] = set()

    def leaves_alone(self, *, truncated_bytes: int) -> bool:
        """Tell whether the index files of a segment are left as they are, also if there are none.

        That is so beside a log that recovery would cut. With a sound index file a broker that was
        stopped cleanly does not look for the damage; without one it recovers the segment.
        """
        return self.is_beside_segments() and truncated_bytes > 0

    def is_beside_segments(self) -> bool:
        """Tell whether the files go beside the segments."""
        return self._output.index_dir is None

    def found(
        self, source: str, relative_path: str, base_offset: int, suffixes: Iterable[str]
    ) -> dict[str, bytes | None]:
        """Return what a segment's files hold where they go to, by suffix; None: not there."""
        folder = place(self._output.folder(source, relative_path))
        return {
            suffix: self._found(folder.child(file_name(base_offset, suffix))) for suffix in suffixes
        }

    def publish(
        self, source: str, relative_path: str, base_offset: int, files: dict[str, bytes | None]
    ) -> None:
        """Publish the files of a segment by suffix; None removes a file.

        A file that has the same bytes already is not written, so a task that runs twice does no
        harm. A file is kept in the set-aside folder before it is replaced or removed. Beside the
        segments none is removed.

        Raises:
            OSError: the folder cannot be made or written to.
        """
        named = {file_name(base_offset, suffix): data for suffix, data in files.items()}
        self.publish_named(source, relative_path, named)

    def publish_named(
        self, source: str, relative_path: str, files: Mapping[str, bytes | None]
    ) -> None:
        """Publish files of a partition by name, as ``publish`` does."""
        folder = self._output.folder(source, relative_path)
        placed = place(folder)
        for name, data in files.items():
            if data is None and self._output.index_dir is None:
                continue
            target = placed.child(name)
            if data == b"" and target.store.is_local:  # the offset index of a tiny segment
                self._make(folder)
                if create_empty(target.path):
                    continue
            found = self._found(target)
            if data == found:
                continue
            if found is not None:
                self._set_aside(source, relative_path, target, found)
            if data is not None:
                self._make(folder)
                publish(target, data)
            else:
                target.filesystem.delete_file(target.path)

    def withdraw(
        self,
        source: str,
        relative_path: str,
        base_offset: int,
        suffixes: Sequence[str],
        *,
        is_new: bool,
    ) -> None:
        """Remove index files of a segment that a broker would not load after all.

        ``is_new``: this run wrote the files, and has kept what they replaced. Files of earlier runs
        are kept in the set-aside folder first; beside the segments they stay.
        """
        if not is_new:
            self.publish(source, relative_path, base_offset, dict.fromkeys(suffixes))
            return
        folder = place(self._output.folder(source, relative_path))
        for suffix in suffixes:
            target = folder.child(file_name(base_offset, suffix))
            if target.kind() is Kind.FILE:
                target.filesystem.delete_file(target.path)

    def remove_others(
        self, source: str, relative_path: str, suffix: str, *, keep: Collection[str]
    ) -> None:
        """Remove the files of a suffix that earlier runs left, except ``keep``.

        They are kept in the set-aside folder. Beside the segments none is removed.
        """
        if self._output.index_dir is None:
            return
        folder = place(self._output.folder(source, relative_path))
        if folder.kind() is not Kind.FOLDER:
            return
        found = (entry.name for entry in list_folder(folder) if entry.name.endswith(suffix))
        self.publish_named(source, relative_path, dict.fromkeys(set(found).difference(keep)))

    def _found(self, target: Place) -> bytes | None:
        if target.store.is_local and local_kind(target.path) is Kind.NOTHING:
            return None
        try:
            if target.store.is_local:
                with closing(LocalFile(target.path)) as opened:
                    return opened.read(0, opened.size_bytes)
            with target.filesystem.open_input_file(target.path) as file:
                return read_range(file, file.size(), 0)
        except FileNotFoundError:
            return None

    def _set_aside(self, source: str, relative_path: str, target: Place, found: bytes) -> None:
        folder = self._output.set_aside_folder(source, relative_path)
        kept = place(folder).child(os.path.basename(target.path))
        if target.store.is_local and Path(target.path).is_symlink():
            self._set_link_aside(folder, Path(target.path), kept)
        elif self._found(kept) is None:  # else a task that runs twice would lose the first bytes
            self._make(folder)
            publish(kept, found)

    def _set_link_aside(self, folder: str, link: Path, kept: Place) -> None:
        """Keep a link as a link; the file that it leads to stays as it is."""
        if not kept.store.is_local:
            reason = f"a symbolic link, which {kept.path} cannot hold: replace it by its file"
            raise OSError(errno.EINVAL, reason, str(link))
        if not is_there(Path(kept.path)):
            self._make(folder)
            Path(kept.path).symlink_to(link.readlink())

    def _make(self, folder: str) -> None:
        if folder not in self._made:
            make_folder(place(folder))
            self._made.add(folder)
