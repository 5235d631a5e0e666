"""A log of a migration's plan: its folder, and the root that its staged folder lies in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import model_validator

from kafka_segments.files.changes.manifests import AbsolutePath
from kafka_segments.files.changes.plan_rows import PlannedFolder, planned_row
from kafka_segments.verbs.change.migrate.staged_log import StagedLog

PLANS = "migration_plans"


class PlannedRoot(PlannedFolder):
    """A log of a plan with the root of its staged folder, as ``decide.listing`` names it."""

    root: AbsolutePath

    @model_validator(mode="after")
    def _is_of_plan(self) -> Self:
        beside = f"{self.log_dir}.migration/{self.plan_id}"
        is_elsewhere = self.root.endswith(f"/{self.plan_id}{self.log_dir}")
        is_inside = f"{self.root}/".startswith(f"{self.log_dir}/")
        if self.root != beside and (is_inside or not is_elsewhere):
            expected = f"{beside!a}, or below a --stage-dir"
            raise ValueError(f"root: found {self.root!a}, {expected} expected")
        return self


def staged_log(row: Mapping[str, Any]) -> StagedLog:
    """Return the folders of a log of a plan.

    Raises:
        SetAsideError: see ``planned_row``.
    """
    log = planned_row(row, PlannedRoot, table=PLANS)
    return StagedLog(Path(log.folder), Path(log.root))
