"""Remove index files in the executors."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.files.changes.index_files import IndexOutput, IndexPublisher
from kafka_segments.files.storage.uris import split_below


def remove_index_files(output: IndexOutput, suffixes: Sequence[str]) -> Transform:
    """Remove the files of every segment that have these suffixes, into the set-aside folder.

    Needs: path (of the .log), base_offset.
    Gives: path (string), one row a segment. The files are removed when the rows are computed.
    """

    def on_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        publisher = IndexPublisher(output)
        for batch in batches:
            paths, offsets = (batch.column(i).to_pylist() for i in range(2))
            for path, base_offset in zip(paths, offsets, strict=True):
                source, relative_path = split_below(path.rpartition("/")[0], output.folders)
                publisher.publish(source, relative_path, base_offset, dict.fromkeys(suffixes))
            yield pa.RecordBatch.from_arrays([batch.column(0)], names=["path"])

    return lambda segments: segments.select("path", "base_offset").mapInArrow(
        on_task, "path string"
    )
