"""Rows of tables of plans: a verb moves files by them, so they are input as manifests are.

Anyone who may write to the tables may change a row. What a row names is checked when it is used:
a log's folder lies in its log directory and has its partition's name, a segment's file lies in that
folder and has its base offset's name.
"""

import os
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import Field, model_validator

from kafka_segments.files.changes.manifests import AbsolutePath, Count, Part, checked_row
from kafka_segments.kafka.text.names import (
    LOG_SUFFIX,
    FolderState,
    file_name,
    parse_partition_folder,
)

PLAN_ID = r"[A-Za-z0-9][A-Za-z0-9._-]*"
"""What a plan's id looks like: it names a folder."""
_REMEDY = "nothing of its log is changed: plan again"


class PlannedFolder(Part):
    """A log of a plan: the columns by which its folder is known.

    ``folder`` is no column where a row is of a segment: it is that of ``path``. ``states``: what
    the folder's name may say of it.
    """

    states: ClassVar[tuple[FolderState, ...]] = (FolderState.LIVE,)

    plan_id: Annotated[str, Field(pattern=f"^{PLAN_ID}$")]
    log_dir: AbsolutePath
    topic: str
    partition: Count
    folder: AbsolutePath

    @model_validator(mode="after")
    def _is_of_partition(self) -> Self:
        parent, name = os.path.split(self.folder)
        parsed = parse_partition_folder(name)
        possible = [(self.topic, self.partition, state) for state in self.states]
        if parent != self.log_dir or parsed not in possible:
            of = f"partition {self.partition} of {self.topic!a} in {self.log_dir!a}"
            raise ValueError(f"path: found {self.folder!a}, no folder of {of}")
        return self


class PlannedFile(PlannedFolder):
    """A segment of a plan; its base offset names its ``.log``."""

    base_offset: Count
    path: AbsolutePath

    @model_validator(mode="after")
    def _is_of_segment(self) -> Self:
        expected = os.path.join(self.folder, file_name(self.base_offset, LOG_SUFFIX))
        if self.path != expected:
            raise ValueError(f"path: found {self.path!a}, {expected!a} expected")
        return self


_F = TypeVar("_F", bound=PlannedFolder)


def planned_row(row: Mapping[str, Any], kind: type[_F], *, table: str) -> _F:
    """Return a row of a table of plans.

    Raises:
        SetAsideError: it names what no plan names, or a number is none.
    """
    path = row["path"] if "path" in row else row["folder"]
    whole = {"folder": os.path.dirname(path), **row}
    place = f"{table}, plan {row['plan_id']}, {path}"
    return checked_row(whole, kind, place=place, remedy=_REMEDY)
