"""Audit of tiered storage: each fault in a layout that has just this one."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kafka_segments.files.folders import kinds
from kafka_segments.files.folders.walk import walk_folders
from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.judge.audit.tasks import AuditScope, SegmentAuditor
from kafka_segments.verbs.judge.audit.tasks_transactions import judge_log_transactions
from kafka_segments.verbs.judge.audit.tasks_uploads import lone_objects
from support.kafka.kafka_referee import Referee
from support.logs.looks_compared import assert_not_denied
from support.stores.tiered_objects import OTHER_ID, SEGMENT_ID, TOPIC_ID, put_log, put_segment

Finding = tuple[str, str, str | None, str]
SOUND = {"identical", "valid"}
SECOND = 1  # the segment of ct-none-0 that is compressed


@pytest.fixture
def logs(broker: Path, tmp_path: Path) -> list[Path]:
    return put_log(tmp_path / "tier", broker, "ct-none-0")


def _audit(tmp_path: Path) -> list[dict[str, Any]]:
    """Audit all below the tier as the pipeline does, without Spark."""
    scope = AuditScope(RecoveryOptions(), (4, 3))
    auditor = SegmentAuditor(scope)
    rows: list[dict[str, Any]] = []
    for folder in walk_folders([(str(tmp_path / "tier"), "")]).folders:
        given = {"cluster": "", "broker_id": -1, "is_clean": True, "is_recovered": False}
        found = [row._asdict() | given for row in folder]
        segments = [row for row in found if row["kind"] == kinds.SEGMENT]
        judged = [row for segment in segments for row in auditor.audit(segment)]
        for segment in segments:
            assert_not_denied(Path(segment["source"], segment["relative_path"], segment["name"]))
        rows += [row for row in judged if "unfolded" not in row]
        unfolded = [row for row in judged if "unfolded" in row]
        rows += judge_log_transactions(unfolded, scope.version)
        rows += [row for s in found if s["kind"] == kinds.LOG for row in lone_objects(s)]
    return rows


def _findings(tmp_path: Path) -> dict[str, Finding]:
    """Give the findings by suffix; there is at most one of each."""
    rows = [row for row in _audit(tmp_path) if row["is_finding"]]
    found = {
        row["suffix"]: (Path(row["path"]).name, row["verdict"], row["kind"], row["effect"])
        for row in rows
    }
    assert len(found) == len(rows)
    return found


def _message(tmp_path: Path, suffix: str) -> str:
    (row,) = (r for r in _audit(tmp_path) if r["suffix"] == suffix and r["is_finding"])
    return f"{row['message']} | {row['consequence']} | {row['action']}"


def _manifest(log: Path, change: Callable[[dict[str, Any]], object]) -> None:
    file = log.with_suffix(".rsm-manifest")
    manifest = json.loads(file.read_bytes())
    change(manifest)
    file.write_text(json.dumps(manifest))


def _remote(log: Path, **values: Any) -> None:
    _manifest(log, lambda manifest: manifest["remoteLogSegmentMetadata"].update(values))


def _part(log: Path, name: str, data: bytes) -> None:
    """Put other bytes at an index's place, as many or not."""
    manifest = json.loads(log.with_suffix(".rsm-manifest").read_bytes())
    indexes = log.with_suffix(".indexes").read_bytes()
    parts = manifest["segmentIndexes"]
    held = {
        key: data if key == name else indexes[p["position"] :][: p["size"]]
        for key, p in parts.items()
        if p is not None or key == name
    }
    position = 0
    for key, value in held.items():
        parts[key] = {"position": position, "size": len(value)}
        position += len(value)
    log.with_suffix(".indexes").write_bytes(b"".join(held.values()))
    log.with_suffix(".rsm-manifest").write_text(json.dumps(manifest))


def test_sound_uploads_have_no_findings(broker: Path, logs: list[Path], tmp_path: Path) -> None:
    put_log(tmp_path / "tier", broker, "txn-0", partition=0)

    rows = _audit(tmp_path)

    verdicts = {(row["suffix"], row["verdict"]) for row in rows}
    assert _findings(tmp_path) == {}
    assert verdicts == {
        (".index", "identical"),
        (".timeindex", "identical"),
        (".txnindex", "identical"),
        (".snapshot", "valid"),
        ("leader-epoch-checkpoint", "valid"),
        (".rsm-manifest", "valid"),
    }
    assert len(rows) == 9 * 5 + 3
    ends = {(r["partition"], r["base_offset"]): r["end_offset"] for r in rows if "end_offset" in r}
    assert ends[7, 0] == 1596
    assert len(ends) == 9


# -- objects that are not there -----------------------------------------------------------------


def test_a_log_without_manifest_is_an_incomplete_upload(logs: list[Path], tmp_path: Path) -> None:
    logs[SECOND].with_suffix(".rsm-manifest").unlink()

    name, stem = logs[SECOND].name, logs[SECOND].stem
    assert _findings(tmp_path) == {
        ".log": (name, "orphan", "no_manifest", "never_read"),
        ".indexes": (f"{stem}.indexes", "orphan", "no_manifest", "never_read"),
    }
    assert f"an incomplete upload: there is no {stem}.rsm-manifest" in _message(tmp_path, ".log")


def test_a_manifest_without_log(logs: list[Path], tmp_path: Path) -> None:
    logs[SECOND].unlink()

    stem = logs[SECOND].stem
    assert _findings(tmp_path) == {
        suffix: (f"{stem}{suffix}", "orphan", "no_log", "remote_reads_fail")
        for suffix in (".indexes", ".rsm-manifest")
    }


def test_a_manifest_without_indexes(logs: list[Path], tmp_path: Path) -> None:
    logs[SECOND].with_suffix(".indexes").unlink()

    name = f"{logs[SECOND].stem}.indexes"
    fails, no_replica = "remote_reads_fail", "replica_build_fails"
    assert _findings(tmp_path) == {
        ".index": (name, "missing", None, fails),
        ".timeindex": (name, "missing", None, fails),
        ".snapshot": (name, "missing", None, no_replica),
        "leader-epoch-checkpoint": (name, "missing", None, no_replica),
    }


def test_an_aborted_transactions_index_that_is_missing(broker: Path, tmp_path: Path) -> None:
    logs = put_log(tmp_path / "tier", broker, "txn-0")
    _manifest(logs[3], lambda found: found["segmentIndexes"].update(transaction=None))

    name = f"{logs[3].stem}.indexes"
    assert _findings(tmp_path) == {
        ".txnindex": (name, "missing", None, "wrong_lookups"),
        ".indexes": (name, "corrupt", "length", "never_read"),
    }


def test_a_second_copy_of_the_same_offsets(logs: list[Path], tmp_path: Path) -> None:
    copy = put_segment(
        tmp_path / "tier",
        b"",
        {},
        end_offset=5,
        max_timestamp_ms=1,
        segment_id=OTHER_ID,
        event_ms=1,
    )

    (row,) = (row for row in _audit(tmp_path) if row["kind"] == "second_copy")
    assert (Path(row["path"]).name, row["effect"]) == (copy.name, "stored_twice")
    assert _findings(tmp_path) == {}


def test_an_object_that_the_plugin_does_not_write(logs: list[Path], tmp_path: Path) -> None:
    logs[0].with_suffix(".timeindex").write_bytes(b"")

    name = f"{logs[0].stem}.timeindex"
    assert _findings(tmp_path) == {".timeindex": (name, "orphan", "no_segment", "never_read")}


# -- indexes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "data", "suffix", "said"),
    [
        ("offset", b"", ".index", ("never_written", "empty", "slow_lookups")),
        ("offset", b"\1" * 7, ".index", ("corrupt", "length", "remote_reads_fail")),
        ("offset", b"\0\0\0\5\0\0\0\1", ".index", ("corrupt", "no_batch", "wrong_lookups")),
        ("timestamp", b"\1" * 13, ".timeindex", ("corrupt", "length", "remote_reads_fail")),
        (
            "timestamp",
            (1_700_000_000_001).to_bytes(8, "big") + b"\0\0\0\5",
            ".timeindex",
            ("corrupt", "untrue", "wrong_times"),
        ),
        ("producerSnapshot", b"", ".snapshot", ("corrupt", "bad_content", "replica_build_fails")),
        (
            "leaderEpoch",
            b"0\n9\n",
            "leader-epoch-checkpoint",
            ("corrupt", "bad_content", "replica_build_fails"),
        ),
        ("transaction", b"\0" * 33, ".txnindex", ("corrupt", "length", "wrong_lookups")),
    ],
    ids=[
        "no offsets", "cut offsets", "wrong offsets", "cut times", "wrong times",
        "no producers", "no epochs", "cut transactions",
    ],
)  # fmt: skip
def test_an_index_that_differs_from_the_rebuilt_one(
    logs: list[Path],
    tmp_path: Path,
    part: str,
    data: bytes,
    suffix: str,
    said: tuple[str, str, str],
) -> None:
    _part(logs[SECOND], part, data)

    assert _findings(tmp_path) == {suffix: (f"{logs[SECOND].stem}.indexes", *said)}


def test_an_indexes_object_that_is_too_short_or_too_long(logs: list[Path], tmp_path: Path) -> None:
    indexes = logs[SECOND].with_suffix(".indexes")
    data = indexes.read_bytes()

    indexes.write_bytes(data[:-1])
    short = _findings(tmp_path)
    indexes.write_bytes(data + b"x")
    long = _findings(tmp_path)

    fails = (indexes.name, "corrupt", "length", "replica_build_fails")
    assert short == {"leader-epoch-checkpoint": fails}
    assert long == {".indexes": (indexes.name, "corrupt", "length", "never_read")}
    assert f"{len(data) + 1} bytes, {len(data)} expected" in _message(tmp_path, ".indexes")


def test_reads_fail_where_kafkas_own_cache_refuses_an_index(
    broker: Path, tmp_path: Path, referee: Referee
) -> None:
    log = put_log(tmp_path / "tier", broker, "txn-0")[3]
    names = {"offset": ".index", "timestamp": ".timeindex", "transaction": ".txnindex"}
    rebuilt = broker / "rebuilt" / "txn-0" / log.name[:20]
    sound = {part: rebuilt.with_suffix(suffix).read_bytes() for part, suffix in names.items()}
    ours, kafkas = {}, {}
    for part, suffix in names.items():
        data = sound[part]
        for how, spoiled in {
            "sound": data, "cut": data[:-1], "empty": b"", "zeros": bytes(len(data)),
            "padded": data + bytes(10 * 12 * 34),
        }.items():  # fmt: skip
            _part(log, part, spoiled)
            served = tmp_path / f"{part}-{how}"
            served.mkdir()
            for other, other_suffix in names.items():
                held = spoiled if other == part else sound[other]
                (served / f"{log.name[:20]}{other_suffix}").write_bytes(held)
            effect = _findings(tmp_path).get(suffix, ("", "", "", "trusted"))[3]
            ours[part, how] = effect == "remote_reads_fail"
            kafkas[part, how] = referee.cache_remote(served, 1165)["fails"] is not None
        _part(log, part, data)

    assert ours == kafkas
    assert {key for key, fails in kafkas.items() if fails} == {
        ("offset", "cut"),
        ("timestamp", "cut"),
        ("timestamp", "padded"),
        ("transaction", "padded"),
        ("transaction", "zeros"),
    }


def test_of_two_copies_the_segment_is_the_one_that_kafka_reads(
    tmp_path: Path, referee: Referee
) -> None:
    lineages = ({0: 0}, {0: 0, 1: 50}, {1: 0}, {0: 0, 3: 20})
    ids = (SEGMENT_ID, OTHER_ID)
    for number, epochs in enumerate(product(lineages, repeat=2)):
        root = tmp_path / str(number) / "tier"
        uploads = []
        for event_ms, (segment_id, lineage) in enumerate(zip(ids, epochs, strict=True)):
            put_segment(
                root, b"", {}, end_offset=99, max_timestamp_ms=1, segment_id=segment_id,
                epochs=lineage, event_ms=event_ms,
            )  # fmt: skip
            told = {str(epoch): start for epoch, start in lineage.items()}
            uploads.append(
                {"id": segment_id, "start": 0, "end": 99, "event_ms": event_ms, "epochs": told}
            )
        newest = max(max(lineage) for lineage in epochs)

        kafkas = referee.announce(uploads, epoch=newest, offset=60)
        (rows,) = walk_folders([(str(root), "")]).folders[-1:]

        assert [row.name for row in rows if row.kind == kinds.SEGMENT] == [f"{0:020d}-{kafkas}.log"]


# -- the manifest -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "effect", "reason"),
    [
        (
            lambda log: _remote(log, endOffset=3140),
            "wrong_lookups",
            "endOffset 3140, the log ends at 3147",
        ),
        (
            lambda log: _remote(log, maxTimestampMs=5),
            "expires_early",
            "maxTimestampMs 5, the log's is 17",
        ),
        (
            lambda log: _remote(log, maxTimestampMs=2**62),
            "wrong_lookups",
            "maxTimestampMs 4611686018427387904, the log's is 17",
        ),
        (
            lambda log: _remote(log, segmentLeaderEpochs={"3": 1597}),
            "wrong_lookups",
            "leader epoch 3 at offset 1597, the log's is 0",
        ),
        (
            lambda log: _remote(log, segmentLeaderEpochs={"0": 1598}),
            "wrong_lookups",
            "leader epoch None at offset 1597, the log's is 0",
        ),
        (
            lambda log: _remote(log, startOffset=1590),
            "remote_reads_fail",
            "startOffset 1590, its name says 1597",
        ),
        (
            lambda log: _manifest(
                log,
                lambda found: found["remoteLogSegmentMetadata"]["remoteLogSegmentId"].update(
                    id=OTHER_ID
                ),
            ),
            "remote_reads_fail",
            f"segment id {OTHER_ID}, its name says -0",
        ),
        (
            lambda log: log.write_bytes(log.read_bytes() + b"x"),
            "remote_reads_fail",
            "the .log object has",
        ),
    ],
    ids=["end", "early", "late", "epoch", "epoch start", "start", "id", "size"],
)
def test_a_manifest_that_disagrees_with_names_or_log(
    logs: list[Path],
    tmp_path: Path,
    change: Callable[[Path], None],
    effect: str,
    reason: str,
) -> None:
    change(logs[SECOND])

    name = f"{logs[SECOND].stem}.rsm-manifest"
    assert _findings(tmp_path) == {".rsm-manifest": (name, "corrupt", "disagrees", effect)}
    assert reason in _message(tmp_path, ".rsm-manifest")


def test_a_manifest_of_another_version(logs: list[Path], tmp_path: Path) -> None:
    _manifest(logs[SECOND], lambda manifest: manifest.update(version="2"))

    name = f"{logs[SECOND].stem}.rsm-manifest"
    assert _findings(tmp_path) == {
        ".rsm-manifest": (name, "corrupt", "bad_content", "remote_reads_fail")
    }


def test_an_encrypted_segment_is_one_row_that_says_so(logs: list[Path], tmp_path: Path) -> None:
    _manifest(logs[SECOND], lambda manifest: manifest.update(encryption={"dataKey": "", "aad": ""}))

    name = f"{logs[SECOND].stem}.rsm-manifest"
    assert _findings(tmp_path) == {".rsm-manifest": (name, "unjudged", "unreadable", "unknown")}
    assert "the .log cannot be read: encrypted" in _message(tmp_path, ".rsm-manifest")


def test_raw_objects_with_ids_are_held_against_their_own_indexes(
    broker: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "tier" / "events-7"
    folder.mkdir(parents=True)
    stem = f"{0:020d}-{TOPIC_ID}"
    log = broker / "logs" / "ct-none-0" / f"{0:020d}.log"
    (folder / f"{stem}.log").write_bytes(log.read_bytes())
    rebuilt = (broker / "rebuilt" / "ct-none-0" / log.name).with_suffix(".index")
    (folder / f"{stem}.index").write_bytes(rebuilt.read_bytes())

    scope = AuditScope(RecoveryOptions(), (4, 3))
    (rows,) = walk_folders([(str(tmp_path / "tier"), "events-7")]).folders
    given = {"cluster": "", "broker_id": -1, "is_clean": True, "is_recovered": False}
    found = list(SegmentAuditor(scope).audit(rows[0]._asdict() | given))

    verdicts = {row["path"].rpartition("/")[2]: row["verdict"] for row in found if "verdict" in row}
    assert verdicts == {f"{stem}.index": "identical", f"{stem}.timeindex": "missing"}
