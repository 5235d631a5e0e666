"""Sessions of Spark Connect that cannot be: told in one line, before anything is done."""

import socket
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException

from kafka_segments.engine.spark import connect
from kafka_segments.engine.spark import session as sessions
from kafka_segments.engine.spark.parallelism import default_parallelism
from kafka_segments.engine.spark.site_settings import MEANING
from kafka_segments.errors import SparkEndedError, UsageError


class FakeClient:
    """A client's session: what it is told to set, and what the server says of a missing table."""

    def __init__(self, says: Exception | str) -> None:
        self.says = says
        self.settings: dict[str, str] = {}
        self.is_stopped = False
        self.conf = SimpleNamespace(set=self._set, get=lambda key, other: other)

    def sql(self, text: str) -> Any:
        if isinstance(self.says, Exception):
            raise self.says
        return SimpleNamespace(collect=lambda: [(self.says,)])

    def _set(self, key: str, value: str) -> None:
        if "arrow" in key:
            raise AnalysisException("[CANNOT_MODIFY_STATIC_CONFIG]")
        self.settings[key] = value

    def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Where somebody listens, named by SPARK_REMOTE with a token that nobody should see."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        number: int = listening.getsockname()[1]
        monkeypatch.setenv("SPARK_REMOTE", f"sc://127.0.0.1:{number}/;token=hidden")
        yield number


def _start(monkeypatch: pytest.MonkeyPatch, made: FakeClient | Exception) -> None:
    def get_or_create() -> FakeClient:
        if isinstance(made, Exception):
            raise made
        return made

    builder = SimpleNamespace(appName=lambda _: SimpleNamespace(getOrCreate=get_or_create))
    monkeypatch.setattr(connect, "SparkSession", SimpleNamespace(builder=builder))
    no_session = SimpleNamespace(getActiveSession=lambda: None)
    monkeypatch.setattr(sessions, "SparkSession", no_session)


def _refusal(tmp_path: Path, error: Exception | None = None) -> str:
    with (
        pytest.raises((UsageError, SparkEndedError)) as refused,
        sessions.spark_session("test", root=tmp_path),
    ):
        if error is not None:
            raise error
    assert "\n" not in str(refused.value)
    assert "hidden" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("remote", ["local[*]", "spark://host:7077", "sc://", "sc:host"])
def test_what_is_no_server_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, remote: str
) -> None:
    _start(monkeypatch, FakeClient(""))
    monkeypatch.setenv("SPARK_REMOTE", remote)

    assert "SPARK_REMOTE does not name a Spark Connect server: sc://" in _refusal(tmp_path)


def test_where_nobody_listens_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _start(monkeypatch, FakeClient(""))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    monkeypatch.setenv("SPARK_REMOTE", f"sc://127.0.0.1:{port}/;token=hidden")

    told = _refusal(tmp_path)

    assert told.startswith(f"no Spark Connect server answers at 127.0.0.1:{port} (Connection")
    assert told.endswith("start it, or unset SPARK_REMOTE to run on this machine")


@pytest.mark.usefixtures("port")
def test_without_the_clients_packages_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _start(monkeypatch, ImportError("[PACKAGE_NOT_INSTALLED] grpcio >= 1.48.1 must be\ninstalled"))

    assert "pip install 'kafka-segments[connect]' ([PACKAGE_NOT" in _refusal(tmp_path)


@pytest.mark.usefixtures("port")
@pytest.mark.parametrize(
    "says",
    [
        AnalysisException("[UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY] Unsupported data source"),
        "Error occurred during query planning: \n[TABLE_OR_VIEW_NOT_FOUND] The table",
    ],
)
def test_a_server_without_delta_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: Exception | str
) -> None:
    client = FakeClient(says)
    _start(monkeypatch, client)

    assert "has no Delta: start it with Delta's JARs and settings" in _refusal(tmp_path)
    assert client.is_stopped


def test_a_session_that_the_server_ends_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: int
) -> None:
    client = FakeClient("[DELTA_MISSING_DELTA_TABLE]")
    _start(monkeypatch, client)

    told = _refusal(tmp_path, PySparkException("status = StatusCode.UNAVAILABLE\ndetails = …"))

    assert told == (
        f"the Spark Connect server at 127.0.0.1:{port} ended, or closed the session: its log says"
        " why; what was done is kept, run it again"
    )
    assert client.is_stopped


@pytest.mark.usefixtures("port")
def test_a_client_sets_what_the_server_lets_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client = FakeClient("Range (0, 1, step=1, splits=8)")
    _start(monkeypatch, client)

    with sessions.spark_session("test", root=tmp_path):
        pass

    assert client.settings == {
        **MEANING,
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.codegen.hugeMethodLimit": "8000",
        "spark.sql.shuffle.partitions": "16",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
        "spark.databricks.delta.snapshotPartitions": "4",
    }
    assert client.is_stopped


def test_a_plan_that_does_not_say_how_it_is_split_is_no_error() -> None:
    assert default_parallelism(FakeClient("PhotonRange")) == 16  # type: ignore[arg-type]


def test_a_server_is_asked_once_into_how_much_it_splits() -> None:
    client = FakeClient("Range (0, 1, step=1, splits=8)")

    assert default_parallelism(client) == 8  # type: ignore[arg-type]
    client.says = PySparkException("asked again")
    assert default_parallelism(client) == 8  # type: ignore[arg-type]


@pytest.mark.usefixtures("port")
@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:1"])
def test_a_server_at_an_address_of_this_machine_is_here_unless_a_proxy_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, proxy: str
) -> None:
    client = FakeClient("Range (0, 1, step=1, splits=8)")
    _start(monkeypatch, client)
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("grpc_proxy", proxy)

    with sessions.spark_session("test", root=tmp_path):
        assert connect.is_on_this_machine(client) == (not proxy)  # type: ignore[arg-type]


@pytest.mark.usefixtures("port")
def test_a_server_at_another_address_is_not_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client = FakeClient("Range (0, 1, step=1, splits=8)")
    _start(monkeypatch, client)
    ends = SimpleNamespace(
        getsockname=lambda: ("192.0.2.1", 40000), getpeername=lambda: ("192.0.2.2", 15002)
    )
    monkeypatch.setattr(connect.socket, "create_connection", lambda *_, **__: nullcontext(ends))

    with sessions.spark_session("test", root=tmp_path):
        assert not connect.is_on_this_machine(client)  # type: ignore[arg-type]
