"""Ranges ahead of a reader: as many as bring more, within a budget of bytes, whatever they do."""

import random
import threading
import time
from contextlib import closing

import pytest

from kafka_segments.files.storage import read_ahead
from kafka_segments.files.storage.range_concurrency import (
    LARGEST_READ_BYTES,
    MOST_ASKED_BYTES,
    MOST_AT_ONCE,
    MOST_BYTES,
    Concurrency,
)
from kafka_segments.files.storage.read_ahead import ReadAhead
from kafka_segments.kafka.wire.reading import FRONT_BYTES

MIB = 1024 * 1024
MARK = 8


class Recorded:
    """A file of which each MiB starts with its number; notes what is under way.

    ``does`` is called with the position of each range before it is filled, and may fail; what it
    returns is how many bytes are filled, None for all.
    """

    def __init__(self, mib, does=lambda position: None):
        self.size_bytes = mib * MIB
        self.asked = []
        self.at_once = self.most_at_once = 0
        self._does = does
        self._lock = threading.Lock()

    def fill(self, position, length, views):
        with self._lock:
            self.asked.append((position, length))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            given = self._does(position)
            left = length if given is None else given
            for view in views:
                step = min(len(view), left)
                for start in range(-position % MIB, step, MIB):
                    end = min(start + MARK, step)
                    view[start:end] = self.mark(position + start)[: end - start]
                position, left = position + step, left - step
                if not left:
                    break
            return (length if given is None else given) - left
        finally:
            with self._lock:
                self.at_once -= 1

    def wait_until_under_way(self, ranges):
        while self.at_once < ranges:
            time.sleep(0.001)

    @staticmethod
    def mark(position):
        return (position // MIB).to_bytes(MARK, "big")


class _Counted(read_ahead._Room):
    def __init__(self):
        super().__init__()
        self.most_held = self.most_asked = 0
        self.blocks = {}  # by identity; kept, so that no other block gets the same one

    def _grant(self, piece):
        super()._grant(piece)
        self.most_held = max(self.most_held, self._held)
        self.most_asked = max(self.most_asked, self._asked)

    def memory(self, size_bytes):
        memory = super().memory(size_bytes)
        if size_bytes == LARGEST_READ_BYTES:
            self.blocks[id(memory)] = memory
        return memory

    def give_back(self, size_bytes, memory):
        assert all(memory is not free for free in self._free)
        super().give_back(size_bytes, memory)


@pytest.fixture
def room(monkeypatch):
    """The memory of the test's own readers: within its bounds, and all of it comes back."""
    counted = _Counted()
    monkeypatch.setattr(read_ahead, "_ROOM", counted)
    yield counted
    assert (counted._held, counted._asked, len(counted._waiting)) == (0, 0, 0)
    assert {id(free) for free in counted._free} == set(counted.blocks)
    assert len(counted._free) == len(counted.blocks) <= MOST_BYTES // LARGEST_READ_BYTES
    assert counted.most_held <= MOST_BYTES
    assert counted.most_asked <= MOST_ASKED_BYTES


def pace_of_most():
    pace = Concurrency()
    pace.at_once = MOST_AT_ONCE
    return pace


def read_all(file, ahead, step=MIB):
    view = memoryview(bytearray(step))
    for position in range(0, file.size_bytes, step):
        length = min(step, file.size_bytes - position)
        assert ahead.read_into(position, view[:length]) == length
        for start in range(0, length, MIB):
            assert view[start : start + MARK] == file.mark(position + start)


@pytest.mark.parametrize("step", [MIB, 4 * MIB, 64 * 1024])
def test_bytes_in_flight_are_bounded_and_pieces_come_in_order_whatever_they_take(room, step):
    draw = random.Random(step)
    file = Recorded(400, lambda _: time.sleep(draw.random() / 500))
    ahead = ReadAhead(file.fill, file.size_bytes, pace_of_most())

    if step < MIB:
        view = memoryview(bytearray(step))
        assert [ahead.read_into(at, view) for at in range(0, 40 * MIB, step)] == [step] * 640
    else:
        read_all(file, ahead, step)
        assert len(file.asked) == 50
    ahead.close()

    assert file.most_at_once <= MOST_AT_ONCE  # how many there were is the scheduler's to say
    assert len(set(file.asked)) == len(file.asked)


def test_a_range_that_takes_long_holds_up_no_others_while_there_is_room(room):
    go_on = threading.Event()
    file = Recorded(400, lambda position: go_on.wait(10) and None if position == 40 * MIB else None)
    ahead = ReadAhead(file.fill, file.size_bytes, pace_of_most())
    asked = MOST_ASKED_BYTES // LARGEST_READ_BYTES - 2  # two are kept of those read
    pieces = 40 * MIB // LARGEST_READ_BYTES + asked

    assert asked_meanwhile(file, ahead, pieces, go_on) == pieces


def asked_meanwhile(file, ahead, pieces, go_on):
    """Read all in a thread; give how many ranges are asked for until ``go_on``, which is set."""
    reading = threading.Thread(target=read_all, args=(file, ahead))
    reading.start()
    until = time.monotonic() + 5
    while len(file.asked) < pieces and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.1)  # no more come
    found = len(file.asked)
    go_on.set()
    reading.join()
    ahead.close()
    return found


@pytest.mark.parametrize("slow", [0, 1])
def test_threads_that_fetch_go_on_by_themselves(room, slow, monkeypatch):
    go_on = threading.Event()
    file = Recorded(
        400, lambda at: None if at != slow * LARGEST_READ_BYTES else go_on.wait(10) and None
    )
    pace = Concurrency()
    monkeypatch.setattr(pace, "took", lambda *_, **__: None)
    ahead = ReadAhead(file.fill, file.size_bytes, pace)
    waiting = pace.at_once - 1
    pieces = MOST_BYTES // LARGEST_READ_BYTES + waiting

    assert asked_meanwhile(file, ahead, pieces, go_on) == pieces


def test_a_jump_waits_for_buffers_that_are_written_to(room):
    go_on = threading.Event()
    file = Recorded(400, lambda at: go_on.wait(10) and None if 0 < at < 300 * MIB else None)
    ahead = ReadAhead(file.fill, file.size_bytes, Concurrency())
    view = memoryview(bytearray(MIB))
    ahead.read_into(0, view)
    file.wait_until_under_way(8)

    jumping = threading.Thread(target=ahead.read_into, args=(350 * MIB, view))
    jumping.start()
    time.sleep(0.05)
    assert jumping.is_alive()
    assert room._held == 9 * LARGEST_READ_BYTES
    go_on.set()
    jumping.join()
    ahead.close()


def test_a_reader_that_is_closed_starts_nothing(room):
    file = Recorded(100)
    ahead = ReadAhead(file.fill, file.size_bytes, Concurrency())
    ahead.close()

    assert ahead.start()
    assert file.asked == []


def test_the_time_of_a_short_range_says_nothing(room, monkeypatch):
    pace = Concurrency()
    times = []
    monkeypatch.setattr(pace, "took", lambda seconds, at_once: times.append(at_once))
    file = Recorded(17)
    ahead = ReadAhead(file.fill, file.size_bytes, pace)

    read_all(file, ahead)
    ahead.close()

    assert len(times) == 2


def test_a_range_that_fails_fails_the_read_that_needs_it_alone(room):
    failing = {5 * LARGEST_READ_BYTES}

    def fail(position):
        if position in failing:
            raise OSError(f"no range at {position}")

    file = Recorded(100, fail)
    ahead = ReadAhead(file.fill, file.size_bytes, pace_of_most())
    view = memoryview(bytearray(MIB))

    for position in range(0, 5 * LARGEST_READ_BYTES, MIB):
        assert ahead.read_into(position, view) == MIB
    for _ in range(2):
        with pytest.raises(OSError, match=f"no range at {5 * LARGEST_READ_BYTES}"):
            ahead.read_into(5 * LARGEST_READ_BYTES, view)
    failing.clear()

    assert ahead.read_into(5 * LARGEST_READ_BYTES, view) == MIB
    assert view[:MARK] == file.mark(5 * LARGEST_READ_BYTES)
    ahead.close()


def test_a_reader_that_leaves_early_waits_for_what_is_written_to(room):
    go_on = threading.Event()
    file = Recorded(200, lambda position: go_on.wait(10) and None if position else None)
    ahead = ReadAhead(file.fill, file.size_bytes, pace_of_most())
    ahead.read_into(0, memoryview(bytearray(MIB)))
    file.wait_until_under_way(8)

    closing = threading.Thread(target=ahead.close)
    closing.start()
    time.sleep(0.05)
    assert closing.is_alive()
    go_on.set()
    closing.join()

    assert file.at_once == 0


def test_a_jump_drops_what_was_ahead(room):
    file = Recorded(300, lambda _: time.sleep(0.001))
    ahead = ReadAhead(file.fill, file.size_bytes, pace_of_most())
    view = memoryview(bytearray(MIB))

    for position in (0, 20 * MIB, 200 * MIB, 201 * MIB, 100 * MIB, 299 * MIB):
        assert ahead.read_into(position, view) == MIB
        assert view[:MARK] == file.mark(position)
    assert ahead.read_into(300 * MIB, view) == 0
    ahead.close()


def test_a_file_that_became_shorter_gives_a_short_read(room):
    def left(position):
        return max(0, min(LARGEST_READ_BYTES, 42 * MIB + 5 - position))

    file = Recorded(100, left)
    ahead = ReadAhead(file.fill, file.size_bytes, pace_of_most())
    view = memoryview(bytearray(MIB))

    read = [ahead.read_into(position, view) for position in range(0, 44 * MIB, MIB)]

    assert read == [MIB] * 42 + [5, 0]
    ahead.close()


def test_a_reader_that_finds_no_room_has_what_it_waits_for_all_the_same(monkeypatch):
    room = read_ahead._Room()
    monkeypatch.setattr(read_ahead, "_ROOM", room)
    files = [Recorded(400), Recorded(400)]
    first, second = (ReadAhead(file.fill, file.size_bytes, pace_of_most()) for file in files)
    first.read_into(0, memoryview(bytearray(MIB)))
    until = time.monotonic() + 5
    while len(files[0].asked) < 32 and time.monotonic() < until:
        time.sleep(0.01)

    read_all(files[1], second)

    assert files[1].most_at_once == 1
    assert len(room._waiting) == 16
    second.close()
    first.close()
    assert (room._held, room._asked) == (0, 0)
    assert len(room._free) == MOST_BYTES // LARGEST_READ_BYTES


def test_memory_that_was_given_back_last_is_used_first():
    room = read_ahead._Room()
    one, two = (room.memory(LARGEST_READ_BYTES) for _ in range(2))
    room.give_back(LARGEST_READ_BYTES, one)
    room.give_back(LARGEST_READ_BYTES, two)

    assert room.memory(LARGEST_READ_BYTES) is two
    assert len(room.memory(LARGEST_READ_BYTES - 1)) == FRONT_BYTES + LARGEST_READ_BYTES - 1
    assert room.memory(LARGEST_READ_BYTES) is one


def test_what_was_fetched_is_given_where_it_is_and_copied_where_it_is_not(room):
    file = Recorded(21, lambda _: time.sleep(0.001))
    ahead = ReadAhead(file.fill, file.size_bytes - 5, pace_of_most())
    view = memoryview(bytearray(2 * MIB))

    for number in (0, 8, 16):
        found = ahead.fetched_at(number * MIB)
        assert found.length == (8 * MIB if number < 16 else 5 * MIB - 5)
        for at in range(0, found.length, MIB):
            mark = found.memory[FRONT_BYTES + at :][:MARK].tobytes()
            assert mark == file.mark(number * MIB + at)
        found.memory[:FRONT_BYTES] = 0xFF
        assert ahead.fetched_at(number * MIB + 1) is None
    assert ahead.fetched_at(21 * MIB - 5) is None
    assert len(file.asked) == 3
    assert ahead.read_into(19 * MIB, view) == 2 * MIB - 5
    assert [view[at : at + MARK] for at in (0, MIB)] == [file.mark(n * MIB) for n in (19, 20)]
    assert len(file.asked) == 3
    ahead.close()


def test_what_was_given_stays_until_two_others_were(room):
    file = Recorded(400)
    ahead = ReadAhead(file.fill, file.size_bytes, pace_of_most())
    given = []

    for number in range(0, 400, 8):
        given.append(ahead.fetched_at(number * MIB).memory)
        for back, memory in enumerate(reversed(given[-2:])):
            assert memory[FRONT_BYTES:][:MARK].tobytes() == file.mark((number - 8 * back) * MIB)
    ahead.close()

    assert len({id(memory) for memory in given}) <= MOST_BYTES // LARGEST_READ_BYTES


def test_answers_that_come_before_there_is_room_wait_without_memory(room):
    entered, filled = [], []

    def fill(position, length, views):
        entered.append(position)
        for view in views:
            filled.append(len(view))
        return length

    ahead = ReadAhead(fill, 1000 * MIB, pace_of_most())
    ahead.read_into(0, memoryview(bytearray(MIB)))
    until = time.monotonic() + 5
    while len(entered) < 32 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.1)

    assert len(entered) == MOST_ASKED_BYTES // LARGEST_READ_BYTES
    assert sum(filled) == MOST_BYTES
    ahead.close()


@pytest.mark.parametrize(
    ("position", "length", "asked"),
    [
        (0, 64 * 1024, 256 * 1024),
        (0, MIB - 1, MIB - 1),
        (50 * MIB, MIB, MIB),
        (50 * MIB, 20, 256 * 1024),
    ],
)
def test_a_look_fetches_little(room, position, length, asked):
    file = Recorded(100)
    ahead = ReadAhead(file.fill, file.size_bytes, Concurrency())

    ahead.read_into(position, memoryview(bytearray(length)))

    assert file.asked == [(position, asked)]
    ahead.close()


def test_a_small_file_is_one_range(room):
    file = Recorded(4)
    ahead = ReadAhead(file.fill, file.size_bytes, Concurrency())

    read_all(file, ahead)

    assert file.asked == [(0, 4 * MIB)]
    ahead.close()


def test_reads_that_go_on_fetch_twice_as_much_each_time(room):
    file = Recorded(100)
    ahead = ReadAhead(file.fill, file.size_bytes, Concurrency())

    for position in range(MIB, 17 * MIB, 256 * 1024):
        ahead.read_into(position, memoryview(bytearray(256 * 1024)))
    ahead.close()

    lengths = [length for _, length in sorted(file.asked)[:6]]
    assert lengths == [256 * 1024, 512 * 1024, MIB, 2 * MIB, 4 * MIB, 8 * MIB]


def taken(rate_of, *, measures=40, pace=None):
    """Give the numbers of ranges at once that a pace takes where so many give such a rate."""
    pace, numbers = pace or Concurrency(), []
    for _ in range(measures):
        at_once = pace.at_once
        numbers.append(at_once)
        for _ in range(at_once):
            assert pace.at_once == at_once
            pace.took(at_once / rate_of(at_once), at_once=at_once)
    return numbers


def test_ranges_at_once_grow_while_that_brings_more():
    assert taken(lambda at_once: at_once) == [8, 16] + [MOST_AT_ONCE] * 38


def test_ranges_at_once_go_back_where_more_bring_nothing_and_are_tried_again():
    assert taken(lambda _: 8, measures=20) == [8, 16, *[8] * 8, 16, *[8] * 8, 16]
    assert taken(lambda at_once: min(at_once, 16), measures=14) == [
        8,
        16,
        32,
        *[16] * 8,
        32,
        16,
        16,
    ]


def test_what_brings_a_tenth_more_is_more():
    assert taken(lambda at_once: {8: 100, 16: 110, 32: 120}[at_once], measures=4) == [8, 16, 32, 16]
    assert taken(lambda at_once: {8: 100, 16: 109}[at_once], measures=3) == [8, 16, 8]


def test_what_a_store_gives_later_is_found_later():
    pace = Concurrency()
    taken(lambda _: 8, pace=pace)

    assert taken(lambda at_once: at_once, pace=pace)[-1] == MOST_AT_ONCE


def test_a_few_ranges_that_take_long_do_not_matter():
    pace = Concurrency()
    for at_once in (8, 16):
        for number in range(at_once):
            pace.took(5.0 if number % 3 == 0 else 0.1, at_once=at_once)

    assert pace.at_once == MOST_AT_ONCE


def test_ranges_among_another_number_say_nothing():
    pace = Concurrency()
    for _ in range(100):
        pace.took(0.1, at_once=7)

    assert pace.at_once == 8


def test_a_reader_takes_the_time_of_ranges_while_as_many_are_under_way(room, monkeypatch):
    monkeypatch.setattr(read_ahead.time, "perf_counter", lambda: 0.0)  # none takes longer
    file = Recorded(800, lambda _: time.sleep(0.05))
    pace = Concurrency()
    ahead = ReadAhead(file.fill, file.size_bytes, pace)

    read_all(file, ahead)
    ahead.close()

    assert pace.at_once == MOST_AT_ONCE
    assert file.most_at_once > 8


def test_what_is_started_is_fetched_within_what_others_left(room):
    first, second = Recorded(400, lambda _: time.sleep(0.001)), Recorded(50)
    ending = []
    one = ReadAhead(
        first.fill, first.size_bytes, pace_of_most(), at_end=lambda: ending.append(two.start())
    )
    two = ReadAhead(second.fill, second.size_bytes, pace_of_most())

    read_all(first, one)
    one.close()
    assert ending[-1]
    assert len(second.asked) == 7
    read_all(second, two)
    two.close()

    assert len(second.asked) == 7


def test_what_a_store_gave_less_of_is_asked_for_once_more(room):
    """It may be the file's end by now; else the store says what is wrong."""
    file = Recorded(20, lambda position: {0: 5}.get(position, 0))
    with closing(ReadAhead(file.fill, file.size_bytes, Concurrency())) as ahead:
        assert ahead.read_into(0, memoryview(bytearray(10))) == 5
    assert [position for position, _ in file.asked] == [0, 5]


@pytest.mark.parametrize("wanted", [10, 2 * MIB])
def test_why_a_store_gave_less_is_told(room, wanted):
    def refuse(position):
        if position:
            raise OSError("out of the range")
        return 5

    file = Recorded(20, refuse)
    with closing(ReadAhead(file.fill, file.size_bytes, Concurrency())) as ahead:
        with pytest.raises(OSError, match="out of the range"):
            ahead.read_into(0, memoryview(bytearray(wanted)))
        with pytest.raises(OSError, match="out of the range"):
            ahead.read_into(5, memoryview(bytearray(wanted)))
