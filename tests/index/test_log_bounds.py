"""Logs at bounds: a start above the end, markers near the next segment, index files too small."""

from pathlib import Path

import pytest

from kafka_segments.kafka.index.log.loading import RecoveryMode
from kafka_segments.kafka.index.segment.recovered_segment import DamageKind
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from support.logs.built_alone import Built, build_alone
from support.logs.strategies import CONTROL, TRANSACTIONAL, v2_batch

LOADS = [RecoveryMode.LOADER_UNCLEAN, RecoveryMode.LOADER_MISSING]
FIRST = f"{0:020d}"


def _build(
    folder: Path,
    segments: dict[int, bytes],
    mode: RecoveryMode,
    *,
    start: int = 0,
    index_bytes: int = 1000,
) -> Built:
    partition = folder / "t-0"
    partition.mkdir(parents=True)
    for base_offset, log in segments.items():
        (partition / f"{base_offset:020d}.log").write_bytes(log)
    recovery = RecoveryOptions(segment_index_bytes=index_bytes)
    return build_alone(
        partition, folder / "out", mode, now_ms=0, recovery=recovery, log_start_offset=start
    )


def _damages(built: Built) -> list[DamageKind | None]:
    return [row.damage and row.damage.kind for row in built.rows.values()]


def _data(offset: int) -> bytes:
    return v2_batch(offset, [(5, None, b"v")], leader_epoch=3)


def _bad_marker(offset: int) -> bytes:
    return v2_batch(
        offset,
        [(5, b"\0", b"")],
        flags=CONTROL | TRANSACTIONAL,
        producer_id=7,
        producer_epoch=0,
    )


@pytest.mark.parametrize("mode", LOADS)
def test_a_log_that_ends_below_its_start_begins_anew(tmp_path: Path, mode: RecoveryMode) -> None:
    built = _build(tmp_path, {0: _data(0), 5: _data(5), 9: _bad_marker(9)}, mode, start=100)

    assert _damages(built) == [DamageKind.REMOVED] * 3
    assert built.files == {
        f"{100:020d}.index": b"",
        f"{100:020d}.timeindex": b"",
        "leader-epoch-checkpoint": b"0\n0\n",
    }


@pytest.mark.parametrize("mode", LOADS)
def test_a_log_that_ends_at_its_start_stays(tmp_path: Path, mode: RecoveryMode) -> None:
    built = _build(tmp_path, {0: _data(0), 5: _data(5)}, mode, start=6)

    assert _damages(built) == [None, None]
    assert {name[:20] for name in built.files if name.endswith(".index")} == {
        FIRST,
        f"{5:020d}",
    }


@pytest.mark.parametrize(
    ("offset", "is_read_again"), [(8, True), (9, True), (10, False), (15, False)]
)
def test_a_bad_marker_stops_a_later_segment_only_if_it_is_read_again(
    tmp_path: Path, offset: int, is_read_again: bool
) -> None:
    segments = {0: _data(0) + _bad_marker(offset), 10: _data(10)}

    alone = _build(tmp_path / "alone", segments, RecoveryMode.SEGMENT)
    loaded = _build(tmp_path / "loaded", segments, RecoveryMode.LOADER_UNCLEAN)

    assert _damages(alone) == [
        DamageKind.BAD_MARKER,
        DamageKind.NOT_LOADED if is_read_again else None,
    ]
    assert _damages(loaded) == [DamageKind.BAD_MARKER, DamageKind.NOT_LOADED]


@pytest.mark.parametrize("mode", LOADS)
def test_a_load_does_not_read_a_bad_marker_that_its_next_segment_is_named_by(
    tmp_path: Path, mode: RecoveryMode
) -> None:
    built = _build(tmp_path, {0: _data(8) + _bad_marker(9), 9: b"", 12: _data(12)}, mode)

    assert _damages(built) == [DamageKind.BAD_MARKER, None, None]
    assert f"{13:020d}.snapshot" in built.files


@pytest.mark.parametrize("index_bytes", [4, 8, 11])
def test_an_index_below_one_entry_is_never_made(tmp_path: Path, index_bytes: int) -> None:
    empty = {
        mode: _build(tmp_path / mode, {0: b""}, mode, index_bytes=index_bytes)
        for mode in RecoveryMode
    }

    assert {mode: _damages(built) for mode, built in empty.items()} == {
        RecoveryMode.SEGMENT: [DamageKind.INDEX_FULL],
        RecoveryMode.LOADER_UNCLEAN: [None],  # its files are there
        RecoveryMode.LOADER_MISSING: [DamageKind.INDEX_FULL],
    }
