"""Damaged logs, refused or cut: what is staged is what Kafka's load without index files leaves."""

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.errors import SetAsideError
from kafka_segments.verbs.change.migrate.decide.actions import SegmentAction
from kafka_segments.verbs.change.migrate.plan.segment_survey import SegmentSurveyor
from kafka_segments.verbs.change.migrate.planned_segment import MigrationRules, PlannedSegment
from kafka_segments.verbs.change.migrate.staged_log import StagedLog
from kafka_segments.verbs.change.migrate.steps.log_staging import LogToStage, finish_log
from kafka_segments.verbs.change.migrate.steps.segment_proof import SegmentProver
from kafka_segments.verbs.change.migrate.steps.segment_staging import SegmentStager
from support.verbs.killed_staging import planned

REFEREE_NOW_MS = 1_700_003_600_000
NOT_LOADED = {"ok-base-offset-not-in-crc", "v2-offsets-go-back"}


def _log(case: Path, tmp_path: Path) -> StagedLog:
    folder = tmp_path / case.name / "t-0"
    shutil.copytree(case / "t-0", folder)
    return StagedLog(folder, tmp_path / f"{case.name}.migration" / "p")


def _rules(case: Path) -> MigrationRules:
    config = json.loads((case / "case.json").read_text())["config"]
    return MigrationRules(
        index_interval_bytes=config["index.interval.bytes"],
        segment_index_bytes=config["segment.index.bytes"],
        cut_damaged=True,
    )


def _damaged(synthetic: Path) -> list[Path]:
    """Give the cases of which a recovery of segments cuts bytes off."""

    def is_cut(case: Path) -> bool:
        segments = json.loads((case / "expected" / "segments.json").read_text())
        return any(segment.get("truncatedBytes") for segment in segments)

    return [folder.parent for folder in synthetic.glob("*/t-0") if is_cut(folder.parent)]


def _surveyed(
    log: StagedLog, rules: MigrationRules
) -> tuple[list[PlannedSegment], list[dict[str, Any]]]:
    surveyor = SegmentSurveyor(rules)
    segments = planned(log)
    facts = [surveyor.survey(segment) for segment in segments]
    cut = [
        segment._replace(action=SegmentAction.CUT, cut_bytes=found["cut_bytes"])
        if found["cut_bytes"]
        else segment
        for segment, found in zip(segments, facts, strict=True)
    ]
    return cut, facts


def _stage(segments: list[PlannedSegment], rules: MigrationRules) -> None:
    stager = SegmentStager(rules)
    for segment in segments:
        stager.stage(segment)
    finish_log(LogToStage(segments, 0, REFEREE_NOW_MS), rules)


def test_a_log_that_is_cut_has_the_files_that_kafkas_load_leaves(
    synthetic: Path, tmp_path: Path
) -> None:
    cases = _damaged(synthetic)
    assert len(cases) > 20
    for case in cases:
        log, rules = _log(case, tmp_path), _rules(case)
        segments, facts = _surveyed(log, rules)
        if case.name in NOT_LOADED:
            assert any("a broker would not load it" in (f["problem"] or "") for f in facts)
            continue
        assert {found["problem"] for found in facts} == {None}, case.name

        _stage(segments, rules)

        load = json.loads((case / "expected" / "loader-missing.json").read_text())
        expected = {file["file"]: file["sha256"] for file in load["filesAfter"]}
        found = {file.name: sha256(file.read_bytes()).hexdigest() for file in log.other.iterdir()}
        assert found == expected, case.name
        prover = SegmentProver(rules)
        assert [prover.prove(segment)["problem"] for segment in segments] == [None] * len(segments)
        for segment in segments:
            assert (log.other / segment.path.name).stat().st_mtime_ns == segment.mtime_ns


def test_without_the_option_each_is_refused_with_what_would_be_lost(
    synthetic: Path, tmp_path: Path
) -> None:
    for case in _damaged(synthetic):
        log = _log(case, tmp_path)
        _, facts = _surveyed(log, replace(_rules(case), cut_damaged=False))
        said = " ".join(found["problem"] or "" for found in facts)
        assert case.name in NOT_LOADED or "--damaged cut" in said, case.name


@pytest.mark.parametrize(
    "case", ["corrupt-crc-middle", "v0-gzip-corrupt-crc-last", "multi-segment-corrupt-middle"]
)
@pytest.mark.parametrize("action", [SegmentAction.INDEXES, SegmentAction.CONVERT])
def test_no_bytes_are_staged_that_recovery_would_cut_off(
    synthetic: Path, tmp_path: Path, case: str, action: SegmentAction
) -> None:
    """A plan of before, or a log whose bytes changed under the same size and mtime."""
    log = _log(synthetic / case, tmp_path)

    with pytest.raises(SetAsideError, match="when it was planned: plan again"):
        _stage(planned(log, action), MigrationRules(convert=action is SegmentAction.CONVERT))

    assert not log.other.exists()


def test_a_segment_that_keeps_its_files_is_proven_to_its_last_byte(
    synthetic: Path, tmp_path: Path
) -> None:
    log = _log(synthetic / "corrupt-crc-last", tmp_path)
    segments = planned(log, SegmentAction.KEEP)
    _stage(segments, MigrationRules())

    proof = SegmentProver(MigrationRules()).prove(segments[0])

    assert "recovery would cut off its last 3170 bytes" in proof["problem"]


def test_a_log_that_is_cut_gets_its_producers_files_anew(synthetic: Path, tmp_path: Path) -> None:
    case = synthetic / "multi-segment-corrupt-middle"
    log, rules = _log(case, tmp_path), _rules(case)
    stale = [f"{123:020d}.snapshot", f"{400:020d}.snapshot", f"{123:020d}.txnindex"]
    for name in stale:
        (log.folder / name).write_bytes(b"of before the cut")
    segments, _ = _surveyed(log, rules)

    _stage(segments, rules)

    kept = [name for name in stale if (log.other / name).exists()]
    assert kept == stale[:1]
    assert (log.other / stale[0]).read_bytes() != b"of before the cut"


def test_a_raft_quorums_log_is_told_by_its_state_file(synthetic: Path, tmp_path: Path) -> None:
    log = _log(synthetic / "kraft-control-batches", tmp_path)
    (log.folder / "quorum-state").touch()

    _, facts = _surveyed(log, MigrationRules())

    assert "the log of a Raft quorum" in facts[0]["unmodelled"]
