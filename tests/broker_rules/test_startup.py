"""What a broker does at start with the files it finds, against Kafka's own loader."""

import os
import random
import struct
from pathlib import Path

import pytest

from kafka_segments.kafka.broker_rules.start.startup import StartupPlan, lost_by_a_cut, plan_startup
from support.kafka.kafka_referee import Referee
from support.logs.strategies import v2_batch

ROUNDS = int(os.environ.get("REFEREE_PARTITIONS", "60"))
BASES = (0, 10, 20, 30)
BOGUS_OFFSET_INDEX = struct.pack(">ii", 4, 0)  # a recovery of these segments leaves none
TIME_INDEX = struct.pack(">qi", 5, 4)


def name(base: int, suffix: str) -> str:
    return f"{base:020d}{suffix}"


def all_files(*bases: int) -> list[str]:
    return [name(base, suffix) for base in bases for suffix in (".log", ".index", ".timeindex")]


def test_after_a_clean_stop_everything_is_trusted() -> None:
    plan = plan_startup(all_files(0, 10, 20), is_clean=True)

    assert plan == StartupPlan((), (), (), (), (), (), (0, 10, 20), None)


@pytest.mark.parametrize(
    ("recovery_point", "recovered", "trusted"),
    [(0, (0, 10, 20), ()), (9, (0, 10, 20), ()), (10, (10, 20), (0,)), (25, (20,), (0, 10))],
)
def test_after_a_hard_stop_segments_from_the_recovery_point_on_are_recovered(
    recovery_point: int, recovered: tuple[int, ...], trusted: tuple[int, ...]
) -> None:
    plan = plan_startup(all_files(0, 10, 20), is_clean=False, recovery_point=recovery_point)

    assert (plan.recovered_second, plan.trusted) == (recovered, trusted)


def test_a_missing_offset_index_is_recovered_even_after_a_clean_stop() -> None:
    files = [file for file in all_files(0, 10) if file != name(0, ".index")]

    plan = plan_startup(files, is_clean=True)

    assert (plan.recovered_first, plan.trusted) == ((0,), (10,))


def test_a_missing_time_index_becomes_an_empty_file_and_stays_so() -> None:
    files = [file for file in all_files(0, 10) if file != name(0, ".timeindex")]

    plan = plan_startup(files, is_clean=True)

    assert plan.emptied == (name(0, ".timeindex"),)
    assert plan.trusted == (0, 10)


def test_an_index_without_its_segment_goes() -> None:
    plan = plan_startup([*all_files(0), name(5, ".index"), name(5, ".txnindex")], is_clean=True)

    assert plan.deleted == (name(5, ".index"), name(5, ".txnindex"))


def test_an_unfinished_compaction_is_undone() -> None:
    files = [*all_files(0, 10), name(10, ".log.cleaned"), name(10, ".log.swap")]

    plan = plan_startup(files, is_clean=True)

    assert plan.deleted == (name(10, ".log.cleaned"), name(10, ".log.swap"))
    assert plan.renamed == ()


def test_a_finished_compaction_is_completed() -> None:
    files = [*all_files(0, 10, 20), name(0, ".log.swap"), name(0, ".index.swap")]

    plan = plan_startup(files, is_clean=True, swap_end_offsets={0: 20})

    assert plan.deleted == tuple(sorted(all_files(0, 10)))
    assert plan.renamed == (
        (name(0, ".index.swap"), name(0, ".index")),
        (name(0, ".log.swap"), name(0, ".log")),
    )
    assert plan.emptied == (name(0, ".timeindex"),)


def test_a_finished_segment_without_its_index_gets_one_full_of_zeros() -> None:
    plan = plan_startup([name(0, ".log.swap")], is_clean=True, swap_end_offsets={0: 10})

    assert plan.zero_filled == (name(0, ".index"),)
    assert (plan.recovered_first, plan.trusted) == ((), (0,))


def test_a_folder_without_segments_gets_an_empty_one() -> None:
    assert plan_startup(["partition.metadata"], is_clean=True, log_start_offset=7).created == 7


def content(file: str) -> bytes:
    base = int(file[:20])
    if ".log" in file:
        return v2_batch(base, [(base + i, None, b"v") for i in range(10)])
    if ".index" in file:
        return BOGUS_OFFSET_INDEX
    return TIME_INDEX if ".timeindex" in file else b""


def drawn_files(draw: random.Random) -> list[str]:
    """Draw the files of a folder, many of them as a crash leaves them."""
    files = [file for file in all_files(*BASES) if draw.random() < 0.8]
    suffixes = (".deleted", ".cleaned", ".swap")
    for base in BASES:
        if draw.random() < 0.2:
            suffix = draw.choice(suffixes)
            files += [file + suffix for file in all_files(base) if draw.random() < 0.8]
    return files


def check_files(folder: Path, files: list[str], plan: StartupPlan) -> None:
    """Compare what Kafka left in the folder with what the plan says."""
    there = {path.name for path in folder.iterdir()}
    renamed = dict(plan.renamed)
    expected = {renamed.get(file, file) for file in files if file not in plan.deleted}
    expected |= set(plan.deleted) & set(renamed.values())
    logs = {file for file in expected if file.endswith(".log")}
    if plan.created is not None:
        logs = {name(plan.created, ".log")}
    assert {file for file in there if file.endswith(".log")} == logs
    unfinished = (".deleted", ".cleaned", ".swap")
    assert not [file for file in there if file.endswith(unfinished)]
    for base in plan.trusted:
        found = (folder / name(base, ".index")).read_bytes()
        is_made = name(base, ".index") in plan.zero_filled
        assert found == (bytes(10_485_760) if is_made else BOGUS_OFFSET_INDEX)
    for base in {*plan.recovered_first, *plan.recovered_second}:
        assert (folder / name(base, ".index")).read_bytes() == b""
        assert len((folder / name(base, ".timeindex")).read_bytes()) == 12
    for file in set(plan.emptied) - {name(base, ".timeindex") for base in plan.recovered_second}:
        assert (folder / file).read_bytes() == b""


def test_random_folders_are_loaded_as_kafka_does(
    referee: Referee, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    for number in range(ROUNDS):
        folder = tmp_path / str(number) / "t-0"
        folder.mkdir(parents=True)
        files = drawn_files(draw)
        for file in files:
            (folder / file).write_bytes(content(file))
        is_clean, recovery_point = draw.random() < 0.5, draw.choice([0, 5, 10, 25, 40])
        plan = plan_startup(
            files,
            is_clean=is_clean,
            recovery_point=recovery_point,
            swap_end_offsets={base: base + 10 for base in BASES},
        )

        referee.load_log(folder, is_clean=is_clean, recovery_point=recovery_point)

        print(f"seed {seed}, {folder}: {files}, {is_clean=}, {recovery_point=}")
        check_files(folder, files, plan)


def test_a_bad_batch_costs_what_follows_only_after_a_hard_stop(
    referee: Referee, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    for number in range(ROUNDS):
        folder = tmp_path / str(number) / "t-0"
        folder.mkdir(parents=True)
        files = [file for file in all_files(*BASES) if file.endswith(".log") or draw.random() < 0.7]
        damaged = draw.choice(BASES)
        for file in files:
            data = bytearray(content(file))
            if file == name(damaged, ".log"):
                data[-1] ^= 1
            (folder / file).write_bytes(data)
        is_clean, recovery_point = draw.random() < 0.3, draw.choice([0, 5, 10, 25, 40])
        plan = plan_startup(files, is_clean=is_clean, recovery_point=recovery_point)
        lost = lost_by_a_cut(plan, damaged)

        found = referee.load_log(folder, is_clean=is_clean, recovery_point=recovery_point)

        where = f"{seed=}, {files}, {damaged=}, {is_clean=}, {recovery_point=}"
        assert found["base_offsets"] == [base for base in BASES if base not in lost], where
