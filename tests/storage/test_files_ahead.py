"""Files of a store that are announced are opened and fetched while others are read."""

import threading
from contextlib import contextmanager
from zlib import crc32

import pytest

from kafka_segments.errors import FileReplacedError
from kafka_segments.files.storage import files_ahead as in_turn
from kafka_segments.files.storage import read_ahead
from kafka_segments.files.storage.files import OpenSegment, place
from kafka_segments.files.storage.files_ahead import FilesInTurn

MIB = 1024 * 1024


@pytest.fixture
def bucket(object_store, request):
    """A bucket of the test's own."""
    name = f"turn-{crc32(request.node.name.encode())}"
    object_store.files.create_dir(name)
    yield name
    object_store.refuses = lambda _: False


@pytest.fixture
def put(object_store, bucket):
    """Gives what puts objects of these sizes, each of one byte's value; gives their places."""

    def put(*sizes):
        for number, size in enumerate(sizes):
            object_store.put(f"{bucket}/{number}.log", bytes([number]) * size)
        object_store.requests.clear()
        return [place(f"s3://{bucket}/{number}.log") for number in range(len(sizes))]

    return put


@pytest.fixture
def files():
    """Files in turn; whatever happens, all buffers come back."""
    turn = FilesInTurn()
    before = read_ahead._ROOM._held
    yield turn
    turn.close()
    assert read_ahead._ROOM._held == before


def read_first(opened, number):
    length = min(MIB, opened.size_bytes)
    view = bytearray(length)
    assert opened.read_into(0, memoryview(view)) == length
    assert set(view) <= {number}


def settled(files):
    """Wait until what was announced is open."""
    for _, opening in files._opening:
        opening.exception()


def gets(store):
    return [found.path.rpartition("/")[2] for found in store.requests if found.method == "GET"]


def test_small_files_that_follow_are_fetched_while_one_is_read(object_store, put, files):
    places = put(1000, 1000, 0, 1000)
    files.announce(places)
    settled(files)
    assert gets(object_store) == []

    with files.open(places[0]) as opened:
        read_first(opened, 0)
        for _, opening in files._opening:
            for ahead in opening.result().segment.start.__self__._ahead:
                ahead.fetched.result()
        assert sorted(gets(object_store)) == ["0.log", "1.log", "3.log"]
    for number in (1, 2, 3):
        with files.open(places[number]) as opened:
            read_first(opened, number)
            opened.check_unchanged()

    assert sorted(gets(object_store)) == ["0.log", "1.log", "3.log"]


def test_the_next_file_waits_until_all_of_this_one_is_under_way(
    object_store, put, files, monkeypatch
):
    monkeypatch.setattr(read_ahead, "MOST_BYTES", 24 * MIB)
    monkeypatch.setattr(read_ahead, "MOST_ASKED_BYTES", 24 * MIB)
    places = put(50 * MIB, 20 * MIB)
    going_on = threading.Event()
    object_store.refuses = lambda request: going_on.wait(0.05) and False
    files.announce(places)
    settled(files)

    with files.open(places[0]) as opened:
        read_first(opened, 0)
        assert "1.log" not in gets(object_store)
        for position in range(MIB, 50 * MIB, MIB):
            opened.read_into(position, memoryview(bytearray(MIB)))
            assert read_ahead._ROOM._held <= 24 * MIB
        assert "1.log" in gets(object_store)
    going_on.set()
    with files.open(places[1]) as opened:
        read_first(opened, 1)


def test_a_file_that_is_not_there_fails_in_its_turn_alone(object_store, bucket, put, files):
    places = put(1000, 1000, 1000)
    object_store.files.delete_file(f"{bucket}/1.log")
    files.announce(places)

    with files.open(places[0]) as opened:
        read_first(opened, 0)
    with pytest.raises(FileNotFoundError), files.open(places[1]):
        pass
    with files.open(places[2]) as opened:
        read_first(opened, 2)


def test_a_file_that_is_replaced_is_noticed_while_the_next_is_fetched(
    object_store, bucket, put, files
):
    places = put(1000, 1000)
    files.announce(places)

    with files.open(places[0]) as opened:
        read_first(opened, 0)
        object_store.put(f"{bucket}/0.log", bytes(999))
        with pytest.raises(FileReplacedError, match="1000 bytes when opened, 999 at the end"):
            opened.check_unchanged()
    with files.open(places[1]) as opened:
        read_first(opened, 1)
        opened.check_unchanged()


def test_a_file_is_checked_while_the_next_one_is_read(files, monkeypatch):
    answers = threading.Event()

    def check():
        assert answers.wait(10)
        raise FileReplacedError(2, 1)

    @contextmanager
    def opened(file, **_):
        yield OpenSegment(lambda *_: 0, 0, check, start=lambda: True)

    monkeypatch.setattr(in_turn, "open_segment", opened)
    places = [place("s3://late/0.log"), place("s3://late/1.log")]
    files.announce(places)

    with files.open(places[0]) as first:
        checked = files.begin_check(first)
    with files.open(places[1]):
        answers.set()
    with pytest.raises(FileReplacedError):
        checked()


def test_a_file_that_none_follows_is_checked_when_that_is_asked_for(files, put):
    (alone,) = put(1000)
    files.announce([alone])

    with files.open(alone) as opened:
        assert files.begin_check(opened) == opened.check_unchanged


def test_files_that_are_passed_over_or_not_announced_are_no_matter(put, files):
    places = put(1000, 1000, 1000, 1000)
    files.announce(places[:3])

    for number in (3, 2):
        with files.open(places[number]) as opened:
            read_first(opened, number)

    assert not files._opening


def test_no_more_than_eight_are_open(put, files):
    places = put(*[10] * 20)
    files.announce(places)

    assert len(files._opening) == 8
    for number, file in enumerate(places):
        with files.open(file) as opened:
            read_first(opened, number)
            assert len(files._opening) == min(8, 19 - number)


def test_files_of_a_disk_are_opened_when_they_are_read(tmp_path, files):
    file = tmp_path / "x.log"
    file.write_bytes(bytes(10))
    files.announce([place(str(file))])

    assert not files._opening
    with files.open(place(str(file))) as opened:
        read_first(opened, 0)
        assert opened.start()
