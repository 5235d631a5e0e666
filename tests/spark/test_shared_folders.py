"""Whether a client of Spark Connect works on a folder of tables in place of its server."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from kafka_segments.engine.spark import connect
from kafka_segments.engine.spark.shared_folders import shares_folder


class FakeClient:
    """A client's session, whose server finds what is below one folder."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, sees: Path | None) -> None:
        self.sees = sees
        self.asked: list[str] = []
        self.read = SimpleNamespace(text=self._text)

    def _text(self, path: str) -> SimpleNamespace:
        self.asked.append(path)
        found = Path(path)
        if self.sees is None or not (found.is_relative_to(self.sees) and found.is_dir()):
            raise PySparkException("[PATH_NOT_FOUND]")
        return SimpleNamespace(schema=["value"])


def _client(sees: Path | None, *, is_here: bool = True) -> FakeClient:
    client = FakeClient(sees)
    if is_here:
        connect._ON_THIS_MACHINE.add(client)  # type: ignore[arg-type]
    return client


def _shares(client: object, folder: Path | str) -> bool:
    return shares_folder(client, str(folder))  # type: ignore[arg-type]


def test_what_the_server_finds_under_a_new_name_is_shared(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    client = _client(tmp_path)

    assert _shares(client, tmp_path)
    assert _shares(client, tmp_path)
    assert len(client.asked) == 1, "it stays so"
    assert [entry.name for entry in tmp_path.iterdir()] == ["segments"]


def test_each_folder_and_session_is_asked_for(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    client = _client(here)

    assert [_shares(client, folder) for folder in (here, there)] == [True, False]
    assert not _shares(_client(None), here)


def test_of_a_folder_that_is_to_be_made_the_one_around_it_is_looked_at(tmp_path: Path) -> None:
    assert _shares(_client(tmp_path), tmp_path / "to" / "be made")
    assert not _shares(_client(None), tmp_path / "to" / "be made")
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_shared_is_asked_for_again(tmp_path: Path) -> None:
    client = _client(None)

    assert not _shares(client, tmp_path)
    assert list(tmp_path.iterdir()) == []
    client.sees = tmp_path
    assert _shares(client, tmp_path)


def test_a_server_on_another_machine_is_not_asked(tmp_path: Path) -> None:
    client = _client(tmp_path, is_here=False)

    assert not _shares(client, tmp_path)
    assert client.asked == []


@pytest.mark.parametrize("name", ["two{s}", "a file", "s3://bucket/tables"])
def test_where_nothing_can_be_made_or_found_by_its_name_nothing_is_shared(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "two{s}").mkdir()
    (tmp_path / "a file").touch()
    client = _client(tmp_path)

    assert not _shares(client, name if ":" in name else tmp_path / name)
    assert client.asked == []


def test_what_others_own_or_may_write_is_not_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = _client(tmp_path)

    tmp_path.chmod(0o777)
    assert not _shares(client, tmp_path)
    tmp_path.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert not _shares(client, tmp_path)
    _another_users(tmp_path / "segments")
    assert not _shares(client, tmp_path)
    assert client.asked == []


def _another_users(folder: Path) -> None:
    if os.geteuid():
        folder.symlink_to("/")
    else:
        folder.mkdir()
        os.chown(folder, 12345, -1)


def test_a_session_of_our_own_shares_everything(tmp_path: Path) -> None:
    assert _shares(SimpleNamespace(), tmp_path / "no such")
