"""Try a sample of mutants and say which ones no test notices."""

import argparse
import json
import os
import shutil
import sys
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from mutants.operators import GROUPS, Change, Mutant, mutants_of
from mutants.reach import REACHED, Reach, Sources
from mutants.warm import FOUND, WARM
from mutants.worker import Worker

ROOT = Path(__file__).resolve().parents[2]
ACCEPTED = Path(__file__).with_name("accepted.toml")
LEAST_SHARE = 0.95
SURVIVORS = ("survived", "no test")
_SHARES = (0.15, 0.85)  # of the time for a mutant: cheap tests alone kill most
_UNIT = "not spark and not airflow and not hdfs"
# Tests of decisions by themselves, the quick ones first, then of the commands around the others.
_DECISIONS = (
    "whole/test_decisions", "scan/test_build_decisions", "failover/test_failover_decisions",
    "forensics/test_forensics", "lag/test_lag_decisions", "latency/test_latency_decisions",
    "migrate/test_migration_decisions", "migrate/test_obstacles", "roll/test_append",
    "search/test_search_decisions", "tables/test_timestamps", "broker_rules/test_release_rules",
    "roll/test_cutting", "console/test_admission", "retention/test_retention_rules",
    "roll/test_roll_rules", "roll/test_recut", "report/test_overview",
    "audit/test_tiered_ranges", "sql/test_statements", "compact/test_index_folders",
    "retention/test_retention", "roll/test_roll", "migrate/test_migration_inventory",
    "search/test_search", "failover/test_failover", "lag/test_lag", "latency/test_latency",
    "internals/test_transactions", "internals/test_internals",
)  # fmt: skip
_ROOMS_LEFT_OUT = {"airflow_dags", "house", "whole"}
_WARM_SECONDS = 3600
_MADE_ONCE = ("messages",)  # tables, and readers put together from them, that a process keeps
_LEFT_OUT = ("hdfs", "object_store", "s3_settings", "fuzz", "other_stores", "log_staging")


def main() -> int:
    """Run; status 1: too many survive, or one without a reason, or a reason without survivor."""
    options = _options()
    found = mutants_of(ROOT / "lib" / "kafka_segments")
    reasons = _reasons()
    drawn, doubted = _sample(found, options, reasons)
    tried = drawn + doubted
    workers = [Worker(ROOT, options.build / f"copy-{n}") for n in range(options.workers)]
    try:
        reach = _reach(workers, options.build / "reach", options)
        killed = _try_warm(workers, tried, reach, options.build / "warm")
        left = [mutant for mutant in tried if mutant not in killed]
        outcomes = killed | _try_all(workers, left, reach, options.seconds, reasons)
    finally:
        for worker in workers:
            worker.close()
    is_wanting = _report_reasons(outcomes, reasons, {mutant.change for mutant in found})
    is_wanting |= _report_groups({mutant: outcomes[mutant] for mutant in drawn}, reasons)
    return int(is_wanting)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=100, help="mutants of each group")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="default: a CPU each")
    parser.add_argument("--seconds", type=float, default=120, help="tests' time for a mutant")
    parser.add_argument("--only", default="", help="mutants whose line of output has this text")
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--keep-reach", action="store_true", help="trust the last run's reach")
    return parser.parse_args()


def _reasons() -> dict[Change, str]:
    """Read why some mutants are left alive."""
    entries = tomllib.loads(ACCEPTED.read_text())["accepted"]
    return {
        (one["path"], one["function"], one["before"], one["after"]): one["reason"]
        for one in entries
    }


def _sample(
    found: list[Mutant], options: argparse.Namespace, reasons: dict[Change, str]
) -> tuple[list[Mutant], list[Mutant]]:
    """Draw mutants of each group; add the others that have a reason, so that it is tried too."""
    groups = options.groups.split(",")
    wanted = [one for one in found if options.only in str(one) and one.group in groups]
    wanted.sort(key=lambda mutant: mutant.rank(options.seed))
    drawn = set[Mutant]()
    for group in groups:
        drawn.update([one for one in wanted if one.group == group][: options.sample])
    doubted = [one for one in wanted if one.change in reasons and one not in drawn]
    return [one for one in wanted if one in drawn], doubted


def _reach(workers: list[Worker], folder: Path, options: argparse.Namespace) -> Reach:
    """Run the tests once, unchanged, file by file."""
    files = _plain_tests()
    folder.mkdir(parents=True, exist_ok=True)
    outs = {path: folder / f"{path.parent.name}-{path.stem}.json" for path in files}
    todo = [path for path in files if not (options.keep_reach and _is_fresh(outs[path], path))]

    def trace(worker: Worker, path: Path) -> None:
        outs[path].unlink(missing_ok=True)
        named = path.relative_to(ROOT).as_posix()
        arguments = ["-p", "mutants.reach", "--maxfail=1000", "-m", _UNIT, named]
        worker.run(arguments, seconds=1800, **{REACHED: str(outs[path])})

    _in_parallel(workers, trace, todo, "traced")
    reach = Reach()
    for out in outs.values():
        if out.exists():
            reach.add(json.loads(out.read_text()))
        else:
            reach.failed.append(out.stem)
    for test in reach.failed:
        print(f"left out, it fails by itself: {test}")
    return reach


def _plain_tests() -> list[Path]:
    """Find the files whose tests, or some of them, start no session of Spark."""
    left_out = {f"test_{name}.py" for name in _LEFT_OUT}
    return [
        path
        for path in sorted((ROOT / "tests").glob("*/test_*.py"))
        if path.parent.name not in _ROOMS_LEFT_OUT
        and path.name not in left_out
        and f"{path.parent.name}/{path.stem}" not in _DECISIONS
    ]


def _try_warm(
    workers: list[Worker], tried: list[Mutant], reach: Reach, folder: Path
) -> dict[Mutant, str]:
    """Try mutants in one long session a worker: of decisions, then all that is not compiled."""
    decisions = [one for one in tried if one.group == "decide" or "/decide" in one.path]
    files = [f"tests/{name}.py" for name in _DECISIONS]
    killed = _in_warm_sessions(workers, decisions, files, "", reach, folder / "decide")
    compiled = Sources(ROOT / "lib" / "kafka_segments").compiled
    plain = [
        mutant
        for mutant in tried
        if mutant not in killed
        and f"{mutant.path}:{mutant.function}" not in compiled
        and mutant.group not in _MADE_ONCE
    ]
    files = [path.relative_to(ROOT).as_posix() for path in _plain_tests()]
    files.sort(key=reach.seconds_of)
    return killed | _in_warm_sessions(workers, plain, files, _UNIT, reach, folder / "plain")


def _in_warm_sessions(
    workers: list[Worker],
    tried: list[Mutant],
    files: list[str],
    marked: str,
    reach: Reach,
    folder: Path,
) -> dict[Mutant, str]:
    """Return the mutants that a test of the files kills; add what the tests reach.

    ``marked``: only the tests whose markers meet this expression; empty: all.
    """
    if not tried:
        return {}
    by_key = {mutant.key: mutant for mutant in tried}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    keys = folder / "keys.json"
    keys.write_text(json.dumps([*by_key]))
    killed: dict[Mutant, str] = {}

    def run(worker: Worker, share: list[str]) -> None:
        out = folder / f"{Path(share[0]).stem}.json"
        names = {WARM: str(keys), FOUND: str(out)}
        arguments = ["-p", "mutants.warm", "-m", marked]
        while share:
            _, output = worker.run([*arguments, *share], seconds=_WARM_SECONDS, **names)
            if not out.exists():
                raise RuntimeError(f"{share} did not run: {output}")
            found = json.loads(out.read_text())
            if not found["trying"]:
                break
            share = share[share.index(found["trying"]["file"]) :]  # that mutant is left out then
        reach.add(found)
        for key, test, why in found["killed"]:
            mutant = by_key[tuple(key)]
            killed[mutant] = "killed"
            print(f"killed    {mutant}  [{test}: {why}]", flush=True)

    count = len(workers)
    _in_parallel(workers, run, [files[n::count] for n in range(count)], "warm sessions")
    return killed


def _is_fresh(out: Path, path: Path) -> bool:
    return out.exists() and out.stat().st_mtime > path.stat().st_mtime


def _try_all(
    workers: list[Worker],
    tried: list[Mutant],
    reach: Reach,
    seconds: float,
    reasons: dict[Change, str],
) -> dict[Mutant, str]:
    """Try each mutant in runs of its own; one that has a reason is doubted by cheap tests alone."""
    sources = Sources(ROOT / "lib" / "kafka_segments")
    outcomes: dict[Mutant, str] = {}

    def attempt(worker: Worker, mutant: Mutant) -> None:
        functions = sources.that_run(mutant.path, mutant.function)
        stale = sources.compiled_with(mutant.path)
        outcome, tests = "no test", list[str]()
        for share in _SHARES[:1] if mutant.change in reasons else _SHARES:
            more = reach.tests(functions, seconds=share * seconds, but=tests)
            if more and outcome in SURVIVORS:
                outcome = worker.kills(mutant, more, stale, seconds=share * seconds)
                tests += more
        outcomes[mutant] = outcome
        print(f"{outcome:9} {mutant}  [{len(tests)} tests]", flush=True)

    _in_parallel(workers, attempt, tried, "tried")
    return outcomes


def _in_parallel(
    workers: list[Worker], work: Callable[[Worker, Any], None], todo: Sequence[Any], name: str
) -> None:
    free: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        free.put(worker)

    def one(item: Any) -> None:
        worker = free.get()
        try:
            work(worker, item)
        finally:
            free.put(worker)

    with ThreadPoolExecutor(len(workers)) as pool:
        for number, _ in enumerate(pool.map(one, todo), 1):
            print(f"{name} {number} of {len(todo)}", file=sys.stderr)


def _report_reasons(
    outcomes: dict[Mutant, str], reasons: dict[Change, str], existing: set[Change]
) -> bool:
    """Print who survives and why; tell whether a reason or its survivor is missing."""
    alive = [mutant for mutant in outcomes if outcomes[mutant] in SURVIVORS]
    print("\nsurvivors" if alive else "\nno survivors")
    for mutant in sorted(alive, key=str):
        print(mutant)
        print(f"    {reasons.get(mutant.change, f'no reason is given, in {mutant.function}')}")
    survivors = {mutant.change for mutant in alive}
    tried = {mutant.change for mutant in outcomes}
    for change in reasons:
        if change not in existing:
            print(f"a reason that has lost its mutant: {change}")
        elif change in tried - survivors:
            print(f"a reason for a mutant that is killed: {change}")
    return bool(survivors - reasons.keys() or reasons.keys() - (survivors | (existing - tried)))


def _report_groups(outcomes: dict[Mutant, str], reasons: dict[Change, str]) -> bool:
    """Print what became of each group's sample; tell whether too few are killed."""
    is_wanting = False
    print("\ngroup      tried  killed  accepted  left  killed of tried")
    for group in GROUPS:
        of_group = [mutant for mutant in outcomes if mutant.group == group]
        if not of_group:
            continue
        alive = [mutant for mutant in of_group if outcomes[mutant] in SURVIVORS]
        accepted = sum(mutant.change in reasons for mutant in alive)
        tried, killed, left = len(of_group), len(of_group) - len(alive), len(alive) - accepted
        is_wanting |= killed / tried < LEAST_SHARE
        print(f"{group:9} {tried:6} {killed:7} {accepted:9} {left:5} {killed / tried:16.1%}")
    print(f"accepted: left alive for a reason in {ACCEPTED.relative_to(ROOT)}; left: without one")
    return is_wanting


if __name__ == "__main__":
    sys.exit(main())
