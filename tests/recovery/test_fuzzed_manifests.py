"""Manifests of kits with drawn faults: what is not kept stays, and nothing else is touched."""

import os
import random
import shutil
from pathlib import Path

import pytest

from kafka_segments.errors import UsageError
from kafka_segments.kafka.text.checkpoints import RECOVERY_POINT
from kafka_segments.verbs.change.recovery.apply.run import ApplyOptions, run_apply, run_rollback
from support.verbs.drawn_manifests import digests_below, put_link, sha256, spoil_manifest
from support.verbs.killed_kit import State, assert_same, state_of
from support.verbs.recovery_kits import crashed_log, made_kit

DRAWN = int(os.environ.get("FUZZ_ROUNDS", "30"))
TORN = (500).to_bytes(8, "big") + (4000).to_bytes(4, "big") + bytes(4) + b"\x02" + bytes(100)


@pytest.fixture
def place(synthetic: Path, memory_folder: Path) -> Path:
    """A log directory of two crashed logs, its kit, and a folder that nobody names."""
    made = memory_folder / "made"
    for name in ("t-0", "u-0"):
        segments = memory_folder / "segments" / name
        shutil.copytree(synthetic / "v2-txn-interleaved-multi-segment" / "t-0", segments)
        crashed_log(made / "logs", segments, torn=TORN)
    points = "0\n3\nother 1 7\nt 0 0\nu 0 0\n"
    (made / "logs" / RECOVERY_POINT).write_text(points)
    (made / "outside").mkdir()
    (made / "outside" / "file").write_text("must stay")
    made_kit(made / "logs", made / "kit")
    return made


def _fault(at: Path, draw: random.Random, *, is_applied: bool) -> None:
    """Spoil a manifest, or put a link in the place of a file or folder."""
    kit = at / "kit"
    manifests = sorted(kit.rglob("*.json"))
    linkable = sorted([*kit.rglob("*"), *(at / "logs").rglob("*")])
    if draw.random() < 0.8:
        kept = [path for path in manifests if "kept" in path.parts]
        spoil_manifest(draw.choice(kept if is_applied else manifests), draw)
    else:
        put_link(draw.choice(linkable), at / "outside")


def _run(at: Path) -> tuple[list[str], ...]:
    """Roll the kit back, first dry; return what is said of each log."""
    said = []
    for run, execute in ((run_rollback, False), (run_rollback, True)):
        try:
            options = ApplyOptions(at / "kit", execute, log_dirs=[str(at / "logs")])
            said.append([step.status for step in run(options)])
        except UsageError:
            said.append([])
    return tuple(said)


def _apply(at: Path) -> None:
    for execute in (False, True):
        try:
            list(run_apply(ApplyOptions(at / "kit", execute, log_dirs=[str(at / "logs")])))
        except UsageError:
            return


def _assert_kept(at: Path, first: State, cut: State) -> None:
    """Check that all that was there first is there, in its place or kept in the kit."""
    there = digests_below(at)
    for name, (data, _) in first.items():
        parts = [data]
        if name in cut and sha256(data) not in there:
            size = len(cut[name][0])
            parts = [data[:size], data[size:]]
        for part in parts:
            if name != RECOVERY_POINT:
                assert sha256(part) in there, name


@pytest.mark.parametrize("is_applied", [False, True], ids=["before apply", "before rollback"])
def test_a_drawn_fault_in_a_manifest_loses_nothing(
    place: Path, memory_folder: Path, seed: int, is_applied: bool
) -> None:
    first = state_of(place / "logs")
    applied = memory_folder / "applied"
    shutil.copytree(place, applied, symlinks=True)
    _apply(applied)
    cut = {k: v for k, v in state_of(applied / "logs").items() if k in first and v != first[k]}
    for number in range(DRAWN):
        draw = random.Random(f"{seed} {is_applied} {number}")
        at = memory_folder / "at"
        shutil.copytree(applied if is_applied else place, at, symlinks=True)
        _fault(at, draw, is_applied=is_applied)
        outside = state_of(at / "outside")
        linked = (at / "outside" / "moved").exists()
        if not is_applied:
            _apply(at)
        dry, done = _run(at)

        assert_same(state_of(at / "outside"), outside)
        _assert_kept(at, first, cut)
        assert [status == "refused" for status in dry] == [s == "refused" for s in done], number
        if not is_applied and not linked and done:
            assert_same(state_of(at / "logs"), first)
        shutil.rmtree(at)
