"""Commands over Spark Connect: a server and its clients as processes, held against local runs."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.catalog import Table
from kafka_segments.engine.tables.delta import Warehouse
from support.house.ci import require_own_mounts
from support.spark.connect_client import Done, run_verb
from support.spark.connect_notebook import asked
from support.spark.connect_server import ConnectServer
from support.spark.stored_builds import files, rows
from support.verbs.every_verb import CALLS, World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
NOW = ("--now-ms", "1795000000000")
TOPIC = "ct-two-partitions"
ASKED = (
    "SELECT topic, count(*) AS n, sum(size_bytes) AS bytes FROM segments GROUP BY topic ORDER BY 1"
)
LISTED = "SELECT topic, path FROM logs ORDER BY path"
OF_THE_RUN = {"run_id", "plan_id", "root", "started_at", "finished_at", "seconds", "steps", "rules"}
OF_THE_FOLDER = {"fingerprint"}  # it names the index folder
HERE_UNNEEDED = {"report", "compact", "build full"}
IN_CI = {"build", "build again", "retention", "search", "sql", "sql json", "sql file"}
"""Of ``_verbs``; all of them are tried at length."""
OF_VERBS_BELOW = {
    *("build", "retention decide", "roll", "audit", "search offsets", "retention explain", "lag"),
    *("migrate inventory", "migrate plan", "report", "validate", "compact", "sql"),
}
"""Calls of every_verb that ``_verbs`` makes in its own way."""
AT_LENGTH = pytest.mark.parametrize(
    "at_length", [pytest.param(True, marks=pytest.mark.long)], ids=["all"], indirect=True
)
"""For a test that is long whatever it is run with."""
WRITTEN = (
    *(table for table in tables.BUILD_TABLES if table is not tables.RUNS),
    tables.RETENTION_DECISIONS,
    tables.ROLL_DECISIONS,
    tables.INDEX_AUDITS,
    tables.MIGRATION_INVENTORY,
    tables.MIGRATION_OBSTACLES,
    tables.MIGRATION_PLANS,
    tables.VALIDATION_RESULTS,
    tables.QUARANTINED_SEGMENTS,
)


def _verbs(logs: Path, folder: Path, *, at_length: bool = True) -> dict[str, tuple[object, ...]]:
    """Give the arguments of each verb, or of those in CI, in their order."""
    warehouse = ("--warehouse", folder / "warehouse")
    build = ("build", "--source", logs, *warehouse, "--index-dir", folder / "indexes", *NOW)
    verbs: dict[str, tuple[object, ...]] = {
        "build": (*build, "--output", "json"),
        "build again": (*build, "--output", "json"),
        "retention": ("retention", *warehouse, *NOW, "--output", "csv"),
        "roll": ("roll", *warehouse, *NOW, "--output", "json"),
        "audit": ("audit", "--source", logs, *warehouse, *NOW),
        "search": ("search", *warehouse, "--topic", TOPIC, "--time", "2026-01-31T14:00:00Z", *NOW),
        "explain": ("retention", "explain", *warehouse, *NOW, f"{TOPIC}-0"),
        "lag": ("lag", *warehouse, *NOW),
        "inventory": ("migrate", "inventory", *warehouse, *NOW),
        "plan": ("migrate", "plan", "--source", logs, *warehouse, *NOW),
        "report": ("report", *warehouse, "--out", folder / "page.html", *NOW),
        "validate": ("validate", *warehouse, *NOW, "--output", "json"),
        "compact": ("compact", *warehouse, *NOW),
        "sql": ("sql", *warehouse, ASKED),
        "sql json": (
            "sql",
            *warehouse,
            "--output",
            "json",
            "SELECT topic, path FROM logs ORDER BY path",
        ),
        "sql tables": ("sql", *warehouse, "SHOW COLUMNS IN segments"),
        "sql file": ("sql", *warehouse, f"SELECT * FROM text.`{logs}`"),
        "build full": (*build, "--full"),
    }
    return {name: words for name, words in verbs.items() if at_length or name in IN_CI}


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["some", "all"]
)
def at_length(request: pytest.FixtureRequest) -> bool:
    """Whether all of ``_verbs`` are run."""
    chosen: bool = request.param
    return chosen


@pytest.fixture(scope="module")
def server(at_length: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A server with a folder of its own."""
    started = ConnectServer(tmp_path_factory.mktemp("connect"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def logs(broker: Path) -> Path:
    return broker / "logs"


@pytest.fixture(scope="module")
def remote(server: ConnectServer, logs: Path, at_length: bool) -> dict[str, Done]:
    """What became of each verb over Connect: of a build as it is on a cluster, then of the rest.

    Others may write where the first one makes its tables, so that the server does it.
    """
    verbs = list(_verbs(logs, server.folder, at_length=at_length).items())
    warehouse = server.folder / "warehouse"
    warehouse.mkdir()
    warehouse.chmod(0o777)
    done = server.run_all([words for _, words in verbs[:1]])
    warehouse.chmod(0o755)
    done += server.run_all([words for _, words in verbs[1:]])
    return dict(zip((name for name, _ in verbs), done, strict=True))


@pytest.fixture(scope="module")
def local_folder(at_length: bool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the same verbs are run here."""
    return tmp_path_factory.mktemp("local")


@pytest.fixture(scope="module")
def local(spark: SparkSession, local_folder: Path, logs: Path, at_length: bool) -> dict[str, Done]:
    """What became of each verb in a session of its own."""
    verbs = _verbs(logs, local_folder, at_length=at_length)
    return {
        name: run_verb(list(map(str, verb)))
        for name, verb in verbs.items()
        if name not in HERE_UNNEEDED
    }


def test_each_verb_ends_as_it_does_here(remote: dict[str, Done], local: dict[str, Done]) -> None:
    said = {name: done.err[-2000:] for name, done in remote.items()}

    assert {name: done.status for name, done in remote.items()} == {
        **{name: done.status for name, done in local.items()},
        **dict.fromkeys(HERE_UNNEEDED & remote.keys(), 0),
    }, said


def test_what_it_prints_is_what_it_prints_here(
    server: ConnectServer, local_folder: Path, remote: dict[str, Done], local: dict[str, Done]
) -> None:
    same = {"search", "explain", "sql", "sql json", "sql tables"} & local.keys()

    assert {name: remote[name].out.replace(str(server.folder), "") for name in same} == {
        name: local[name].out.replace(str(local_folder), "") for name in same
    }
    assert local["sql"].out.splitlines()
    assert "is refused: a query reads the tables of the warehouse" in remote["sql file"].err


@pytest.mark.usefixtures("remote", "local")
@pytest.mark.parametrize("table", WRITTEN, ids=lambda table: str(table.name))
def test_a_table_has_the_rows_that_it_has_here(
    spark: SparkSession, server: ConnectServer, local_folder: Path, table: Table
) -> None:
    there = Warehouse(spark, str(local_folder / "warehouse"))
    if there.version(table) is None:
        assert Warehouse(spark, str(server.folder / "warehouse")).version(table) is None
        return

    def found(folder: Path) -> list[dict[str, object]]:
        return rows(spark, str(folder / "warehouse"), table, without=OF_THE_RUN | OF_THE_FOLDER)

    assert found(server.folder) == found(local_folder)


@pytest.mark.usefixtures("remote", "local")
def test_the_index_files_are_those_of_a_build_here(
    server: ConnectServer, local_folder: Path, at_length: bool
) -> None:
    assert files(server.folder / "indexes") == files(local_folder / "indexes")
    assert not at_length or (server.folder / "page.html").stat().st_size > 10_000


def test_an_unchanged_build_reads_no_segment(remote: dict[str, Done]) -> None:
    assert "read 0 of 24 segments (0 bytes), 24 unchanged" in remote["build again"].err


def test_a_verb_asks_the_server_little(remote: dict[str, Done]) -> None:
    """A call to plan or to run takes the server a tenth of a second, and more for more columns."""
    most = {
        **{"build again": 6, "retention": 6, "roll": 6, "audit": 6, "search": 4, "explain": 8},
        **{"inventory": 9, "report": 5, "validate": 3, "sql": 8, "build full": 18},
    }

    most = {name: calls for name, calls in most.items() if name in remote}
    assert {name: max(remote[name].calls, calls) for name, calls in most.items()} == most


def test_few_rows_are_held_by_the_client_and_are_the_servers(server: ConnectServer) -> None:
    rows = [{"id": number, "text": str(number)} for number in range(3)]
    numbers = [4, 3, 2]

    assert server.ask("connect_frames.py") == {
        "settings": {
            "few": True,
            "within": ["false", "NO_CODEGEN", "false", "4"],
            "many": [True, True],
            "after": True,
        },
        "rows": {
            "are as given": True,
            "have their types": [True, True],
            "none": [],
            "many": [40_000, f"{39_999:060}"],
        },
        "held": {"calls": 1, "rows": rows, "same": rows},
        "collected": {
            "numbers": [{"id": number} for number in numbers],
            "nested": [{"of": {"id": n, "col2": [n]}, "nothing": None} for n in numbers],
            "none": [],
            "count": [{"count": 3}],
        },
    }


@AT_LENGTH
def test_what_others_may_write_the_server_reads_and_says_the_same(
    server: ConnectServer, logs: Path, remote: dict[str, Done]
) -> None:
    warehouse = server.folder / "warehouse"
    verbs = {name: _verbs(logs, server.folder)[name] for name in ("search", "explain", "sql json")}

    warehouse.chmod(0o777)
    try:
        done = dict(zip(verbs, server.run_all(list(verbs.values())), strict=True))
    finally:
        warehouse.chmod(0o755)

    assert {name: done[name].out for name in verbs} == {name: remote[name].out for name in verbs}
    assert done["search"].calls > remote["search"].calls


@AT_LENGTH
def test_where_the_server_sees_other_tables_those_are_read_and_none_here_written(
    spark: SparkSession, server: ConnectServer, logs: Path, remote: dict[str, Done], tmp_path: Path
) -> None:
    require_own_mounts()
    here, there = Warehouse(spark, str(server.folder / "warehouse")), tmp_path / "warehouse"
    build = ("build", "--source", logs / f"{TOPIC}-0", "--warehouse", there, *NOW)
    assert run_verb(list(map(str, (*build, "--index-dir", tmp_path / "indexes")))).status == 0
    (tmp_path / "server").mkdir()
    versions = {table.name: here.version(table) for table in WRITTEN}

    other = ConnectServer(tmp_path / "server", mounts=(there, Path(here.root)))
    try:
        verbs = _verbs(logs, server.folder)
        counted, _ = other.run_all([verbs["sql"], verbs["retention"]])
    finally:
        other.close()

    assert [line.split()[0] for line in counted.out.splitlines()[1:]] == [TOPIC]
    assert len(remote["sql"].out.splitlines()) > 2
    assert {table.name: here.version(table) for table in WRITTEN} == versions


@AT_LENGTH
def test_every_other_verb_runs_there_and_gives_as_many_rows_as_here(
    spark: SparkSession, server: ConnectServer, cluster: Path, synthetic: Path, tmp_path: Path
) -> None:
    verbs = [verb for verb in CALLS if verb not in OF_VERBS_BELOW]
    world, as_it_was = tmp_path / "world", tmp_path / "as-it-was"
    calls = World(spark, cluster, synthetic, world)
    words = [[*calls.call(verb), "--output", "json", "--quiet"] for verb in verbs]
    shutil.copytree(world, as_it_was)

    remote = dict(zip(verbs, server.run_all(words), strict=True))
    shutil.rmtree(world)
    as_it_was.rename(world)
    local = {verb: run_verb(each) for verb, each in zip(verbs, words, strict=True)}

    assert {verb: _ended(done) for verb, done in remote.items()} == {
        verb: _ended(done) for verb, done in local.items()
    }
    assert {done.status for done in local.values()} <= {0, 1}


def _ended(done: Done) -> tuple[int, str, int]:
    """Give what two runs of a verb on equal folders have in common: status, errors, rows."""
    return done.status, done.err[-2000:], done.out.count("\n")


def test_a_command_is_a_client_by_the_variable_alone(
    server: ConnectServer, remote: dict[str, Done]
) -> None:
    done = server.run("sql", "--warehouse", server.folder / "warehouse", "--output", "json", ASKED)

    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["topic"] for line in done.stdout.splitlines()] == [
        line.split()[0] for line in remote["sql"].out.splitlines()[1:]
    ]


def test_the_shell_types_verbs_into_one_session_there(
    server: ConnectServer, remote: dict[str, Done]
) -> None:
    warehouse = server.folder / "warehouse"
    lines = (
        f'sql "{ASKED}" --warehouse {warehouse}',
        "validate --warehouse /nowhere",
        f"sql 'SELECT nothing' --warehouse {warehouse}",
        f"search --warehouse {warehouse} --topic {TOPIC} --time 2026-01-31T14:00:00Z",
    )

    done = server.run("shell", typed="\n".join(lines))

    assert done.stdout == remote["sql"].out + remote["search"].out
    statuses = [line for line in done.stderr.splitlines() if line.startswith("status ")]
    assert [line.partition(",")[0][-1] for line in statuses] == ["0", "2", "2", "0"], done.stderr
    assert done.returncode == 2


@AT_LENGTH
@pytest.mark.usefixtures("remote", "local")
def test_a_notebook_there_has_the_rows_that_one_has_here(
    spark: SparkSession, server: ConnectServer, local_folder: Path, logs: Path
) -> None:
    there = server.ask("connect_notebook.py", logs, server.folder / "warehouse")

    here = asked(str(logs), str(local_folder / "warehouse"), spark)
    assert {name: len(rows) for name, rows in there.items()} == {
        name: len(rows) for name, rows in here.items()
    }
    same = ("retention", "explain", "roll", "search", "latency", "sql", "batches", "records")
    assert {name: there[name] for name in same} == {name: here[name] for name in same}


@AT_LENGTH
def test_a_server_without_delta_is_named(
    tmp_path: Path, server: ConnectServer, remote: dict[str, Done]
) -> None:
    bare = ConnectServer(tmp_path, has_delta=False)
    try:
        done = bare.run("sql", "--warehouse", server.folder / "warehouse", ASKED)
    finally:
        bare.close()

    assert done.returncode == 2
    assert "has no Delta: start it with Delta's JARs and settings" in done.stderr
    assert len(done.stderr.splitlines()) == 1
