"""Find the segments that index files belong to, by the builds that wrote the files."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_segments.engine.tables.keys import Transform
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.uris import folders_below, join_uri, lies_in
from kafka_segments.kafka.text.names import FolderState, is_of_partition, parse_partition_folder

_THINNABLE = ("kafka", "kip33")
_TO_THE_END = 2**31 - 1


def is_compacted(name: str, *, has_folders: bool, files: Iterable[str]) -> bool:
    """Tell whether the index files of a folder are compacted: it is a partition's that stays.

    Args:
        name: of the folder.
        has_folders: there are folders in it.
        files: names of the files in it.
    """
    parsed = parse_partition_folder(name)
    if parsed is None or parsed.state not in (FolderState.LIVE, FolderState.FUTURE):
        return False
    return is_of_partition(has_folders=has_folders, files=files)


def only_builds_into(index_dir: str) -> Transform:
    """Return the builds that wrote to an index folder.

    Needs: rows of table ``runs``.
    Gives: sources (array of string), options (string, JSON); a row for each combination.
    """
    is_target = F.get_json_object("options", "$.index_dir") == F.lit(index_dir)
    return lambda runs: runs.where(is_target).select("sources", "options").distinct()


def check_builds(
    builds: Sequence[Mapping[str, Any]], *, index_dir: str, warehouse: str, is_thinned: bool
) -> None:
    """Check that the files of an index folder are known, and may be thinned if that is asked.

    Args:
        builds: rows of ``only_builds_into``.
        index_dir: the folder that the builds wrote to.
        warehouse: the warehouse of the builds, for messages.
        is_thinned: entries are to be left out.

    Raises:
        UsageError: no build wrote to the folder, or files of its format cannot be thinned.
    """
    if not builds:
        raise UsageError(
            f"--index-dir {index_dir}: no build of {warehouse} wrote there,"
            " so what is an orphan cannot be told"
        )
    formats = {str(json.loads(build["options"]).get("index_format")) for build in builds}
    if is_thinned and not formats <= set(_THINNABLE):
        raise UsageError(
            f"--index-interval-bytes: {index_dir} holds files of format"
            f" {', '.join(sorted(formats))}; only {' and '.join(_THINNABLE)} can be thinned"
        )


def segments_by_folder(builds: Sequence[Mapping[str, Any]], *, index_dir: str) -> Transform:
    """Return the segments that exist, by the folder of their index files.

    Needs: rows of table ``segments``.
    Gives: folder (string), base_offsets (array of long).
    """
    target = F.lit(None)
    for root, below in _roots(builds, index_dir):
        rest = F.substring(F.col("path"), len(root) + 1, _TO_THE_END)
        lies_below = F.col("path").startswith(f"{root}/")
        target = F.when(lies_below, F.concat(F.lit(below), rest)).otherwise(target)

    def transform(segments: DataFrame) -> DataFrame:
        return (
            segments.where(F.col("vanished_at").isNull())
            .withColumn("folder", F.regexp_replace(target, "/[^/]*$", ""))
            .where(F.col("folder").isNotNull())
            .groupBy("folder")
            .agg(F.collect_set("base_offset").alias("base_offsets"))
        )

    return transform


def origins_of(
    folder: str, builds: Sequence[Mapping[str, Any]], *, index_dir: str
) -> Iterator[str]:
    """Yield the folders whose segments may have their index files in a folder."""
    for root, below in _roots(builds, index_dir):
        if lies_in(folder, below):
            yield root + folder[len(below) :]


def _roots(builds: Sequence[Mapping[str, Any]], index_dir: str) -> Iterator[tuple[str, str]]:
    """Yield each source of builds and the folder of its index files, without a last slash."""
    for build in builds:
        for source, folder in folders_below(build["sources"]).items():
            yield source.rstrip("/"), join_uri(index_dir, folder)
