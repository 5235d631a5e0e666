"""What a build says at its end: what someone must look at, apart from what any broker leaves."""

from dataclasses import replace

import pytest

from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.verbs.scan.missing_segments import MissingSegment
from kafka_segments.verbs.scan.options import BuildOptions
from kafka_segments.verbs.scan.report import print_build
from kafka_segments.verbs.scan.summary import BuildSummary

DONE = BuildSummary(
    run_id="r",
    segments_found=9,
    segments_scanned=9,
    segments_unchanged=0,
    segments_vanished=0,
    segments_damaged=0,
    segments_open=0,
    files_unrecognized=0,
    files_left_over=0,
    files_passed_over=0,
    bytes_scanned=90,
    findings=0,
    seconds=1.0,
    seconds_by_step={},
)
LIVE = replace(DONE, segments_open=1)
OPTIONS = BuildOptions(("/logs",), RecoveryOptions(), 0)


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (DONE, []),
        (
            replace(
                DONE, segments_damaged=1, segments_open=1, files_unrecognized=3, files_left_over=3
            ),
            [
                "1 segments end as a running broker leaves them, torn or preallocated: no finding,"
                " column damage has them",
                "3 files left over, which a broker resolves at its start: no finding, table"
                " unrecognized_files has them",
            ],
        ),
        (
            replace(
                DONE, segments_damaged=3, segments_open=1, files_unrecognized=2, files_left_over=0
            ),
            [
                "2 damaged segments: column damage of table segments",
                "1 segments end as a running broker leaves them, torn or preallocated: no finding,"
                " column damage has them",
                "2 files or folders not taken: table unrecognized_files",
            ],
        ),
        (
            replace(
                DONE, segments_damaged=1, segments_forbidden=2, forbidden_why="Permission denied"
            ),
            [
                "1 damaged segments: column damage of table segments",
                "2 segments not read for want of permission, e.g. Permission denied",
            ],
        ),
        (
            replace(DONE, files_unrecognized=3, files_passed_over=3),
            [
                "3 files that are none of Kafka's, which a broker passes over: no finding, table"
                " unrecognized_files has them",
            ],
        ),
        (
            replace(
                DONE,
                missing=(
                    MissingSegment("/logs/t-0", "none between 20 and 30"),
                    MissingSegment("/logs/t-0", "none between 50 and 60"),
                    MissingSegment("/logs/u-0", "compacted, or none between 1 and 2"),
                ),
            ),
            [
                "2 such, e.g. /logs/t-0: none between 20 and 30; put it back from a backup or"
                " another replica; `audit` names all",
                "/logs/u-0: compacted, or none between 1 and 2; put it back from a backup or"
                " another replica",
            ],
        ),
    ],
)
def test_findings_are_told_apart_from_what_a_broker_leaves(
    done: BuildSummary, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    print_build(done, OPTIONS, "/warehouse", dry_run=False)

    assert capsys.readouterr().err.splitlines()[1:-1] == said


def test_what_headers_do_not_tell_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    options = replace(OPTIONS, recovery=replace(OPTIONS.recovery, check_crc=False))

    done = replace(DONE, segments_scanned=3)
    for dry_run in (False, True):
        print_build(done, options, "/warehouse", dry_run=dry_run)
    print_build(replace(DONE, segments_scanned=0), options, "/warehouse", dry_run=False)

    told = capsys.readouterr().err
    assert told.count("whether their records are sound is not known") == 1
