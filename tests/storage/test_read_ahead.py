"""Ranges ahead of a reader: as many as bring more, within a budget of bytes, whatever they do."""

import random
import threading
import time

import pytest

from kafka_segments.storage import read_ahead
from kafka_segments.storage.pace import (
    LARGEST_READ_BYTES,
    MOST_AT_ONCE,
    MOST_BYTES,
    Pace,
)
from kafka_segments.storage.read_ahead import ReadAhead

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

    def read_into(self, position, view):
        with self._lock:
            self.asked.append((position, len(view)))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            length = self._does(position)
            length = len(view) if length is None else length
            for start in range(-position % MIB, length, MIB):
                end = min(start + MARK, length)
                view[start:end] = self.mark(position + start)[: end - start]
            return length
        finally:
            with self._lock:
                self.at_once -= 1

    @staticmethod
    def mark(position):
        return (position // MIB).to_bytes(MARK, "big")


class _Counted(read_ahead._Buffers):
    def __init__(self):
        super().__init__()
        self.out = self.most_out = 0

    def _another(self):
        self.out += 1
        self.most_out = max(self.most_out, self.out)
        return super()._another()

    def give_back(self, buffer):
        assert len(buffer) == LARGEST_READ_BYTES
        assert all(buffer.obj is not free.obj for free in self._free)
        self.out -= 1
        super().give_back(buffer)


@pytest.fixture
def buffers(monkeypatch):
    """The buffers of the test's own readers; all come back."""
    counted = _Counted()
    monkeypatch.setattr(read_ahead, "_BUFFERS", counted)
    yield counted
    assert counted.out == 0
    assert counted.most_out * LARGEST_READ_BYTES <= MOST_BYTES


def pace_of_most():
    pace = Pace()
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
def test_bytes_in_flight_are_bounded_and_pieces_come_in_order_whatever_they_take(buffers, step):
    draw = random.Random(step)
    file = Recorded(400, lambda _: time.sleep(draw.random() / 500))
    ahead = ReadAhead(file.read_into, file.size_bytes, pace_of_most())

    if step < MIB:
        view = memoryview(bytearray(step))
        assert [ahead.read_into(at, view) for at in range(0, 40 * MIB, step)] == [step] * 640
    else:
        read_all(file, ahead, step)
        assert len(file.asked) == 100
    ahead.close()

    assert 4 < file.most_at_once <= MOST_AT_ONCE
    assert len(set(file.asked)) == len(file.asked)


def test_a_range_that_takes_long_holds_up_no_others_while_there_is_room(buffers):
    go_on = threading.Event()
    file = Recorded(400, lambda position: go_on.wait(10) and None if position == 40 * MIB else None)
    ahead = ReadAhead(file.read_into, file.size_bytes, pace_of_most())
    pieces = 40 * MIB // LARGEST_READ_BYTES - 2 + MOST_BYTES // LARGEST_READ_BYTES

    assert asked_meanwhile(file, ahead, pieces, go_on) == pieces


def asked_meanwhile(file, ahead, pieces, go_on):
    """Read all in a thread; give how many ranges are asked for until ``go_on``, which is set."""
    reading = threading.Thread(target=read_all, args=(file, ahead))
    reading.start()
    until = time.monotonic() + 5
    while (len(file.asked) < pieces or file.at_once > 1) and time.monotonic() < until:
        time.sleep(0.01)
    found = len(file.asked)
    go_on.set()
    reading.join()
    ahead.close()
    return found


@pytest.mark.parametrize("slow", [0, 1])
def test_threads_that_fetch_go_on_by_themselves(buffers, slow):
    go_on = threading.Event()
    file = Recorded(
        400, lambda at: None if at != slow * LARGEST_READ_BYTES else go_on.wait(10) and None
    )
    ahead = ReadAhead(file.read_into, file.size_bytes, Pace())
    most = MOST_BYTES // LARGEST_READ_BYTES

    assert asked_meanwhile(file, ahead, most, go_on) == most


def test_a_jump_waits_for_buffers_that_are_written_to(buffers):
    go_on = threading.Event()
    file = Recorded(400, lambda at: go_on.wait(10) and None if 0 < at < 300 * MIB else None)
    ahead = ReadAhead(file.read_into, file.size_bytes, Pace())
    view = memoryview(bytearray(MIB))
    ahead.read_into(0, view)

    jumping = threading.Thread(target=ahead.read_into, args=(350 * MIB, view))
    jumping.start()
    time.sleep(0.05)
    assert jumping.is_alive()
    assert buffers.out == 9
    go_on.set()
    jumping.join()
    ahead.close()


def test_a_reader_that_is_closed_starts_nothing(buffers):
    file = Recorded(100)
    ahead = ReadAhead(file.read_into, file.size_bytes, Pace())
    ahead.close()

    assert ahead.start()
    assert file.asked == []


def test_the_time_of_a_short_range_says_nothing(buffers, monkeypatch):
    pace = Pace()
    times = []
    monkeypatch.setattr(pace, "took", lambda seconds, at_once: times.append(at_once))
    file = Recorded(9)
    ahead = ReadAhead(file.read_into, file.size_bytes, pace)

    read_all(file, ahead)
    ahead.close()

    assert len(times) == 2


def test_a_range_that_fails_fails_the_read_that_needs_it_alone(buffers):
    failing = {5 * LARGEST_READ_BYTES}

    def fail(position):
        if position in failing:
            raise OSError(f"no range at {position}")

    file = Recorded(100, fail)
    ahead = ReadAhead(file.read_into, file.size_bytes, pace_of_most())
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


def test_a_reader_that_leaves_early_waits_for_what_is_written_to(buffers):
    go_on = threading.Event()
    file = Recorded(200, lambda position: go_on.wait(10) and None if position else None)
    ahead = ReadAhead(file.read_into, file.size_bytes, pace_of_most())
    ahead.read_into(0, memoryview(bytearray(MIB)))

    closing = threading.Thread(target=ahead.close)
    closing.start()
    time.sleep(0.05)
    assert closing.is_alive()
    go_on.set()
    closing.join()

    assert file.at_once == 0


def test_a_jump_drops_what_was_ahead(buffers):
    file = Recorded(300, lambda _: time.sleep(0.001))
    ahead = ReadAhead(file.read_into, file.size_bytes, pace_of_most())
    view = memoryview(bytearray(MIB))

    for position in (0, 20 * MIB, 200 * MIB, 201 * MIB, 100 * MIB, 299 * MIB):
        assert ahead.read_into(position, view) == MIB
        assert view[:MARK] == file.mark(position)
    assert ahead.read_into(300 * MIB, view) == 0
    ahead.close()


def test_a_file_that_became_shorter_gives_a_short_read(buffers):
    def left(position):
        return max(0, min(LARGEST_READ_BYTES, 42 * MIB + 5 - position))

    file = Recorded(100, left)
    ahead = ReadAhead(file.read_into, file.size_bytes, pace_of_most())
    view = memoryview(bytearray(MIB))

    read = [ahead.read_into(position, view) for position in range(0, 44 * MIB, MIB)]

    assert read == [MIB] * 42 + [5, 0]
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
def test_a_look_fetches_little(buffers, position, length, asked):
    file = Recorded(100)
    ahead = ReadAhead(file.read_into, file.size_bytes, Pace())

    ahead.read_into(position, memoryview(bytearray(length)))

    assert file.asked == [(position, asked)]
    ahead.close()


def test_a_small_file_is_one_range(buffers):
    file = Recorded(4)
    ahead = ReadAhead(file.read_into, file.size_bytes, Pace())

    read_all(file, ahead)

    assert file.asked == [(0, 4 * MIB)]
    ahead.close()


def test_reads_that_go_on_fetch_twice_as_much_each_time(buffers):
    file = Recorded(100)
    ahead = ReadAhead(file.read_into, file.size_bytes, Pace())

    for position in range(MIB, 9 * MIB, 256 * 1024):
        ahead.read_into(position, memoryview(bytearray(256 * 1024)))
    ahead.close()

    lengths = [length for _, length in sorted(file.asked)[:6]]
    assert lengths == [256 * 1024, 512 * 1024, MIB, 2 * MIB, 4 * MIB, 4 * MIB]


def taken(rate_of, *, measures=40, pace=None):
    """Give the numbers of ranges at once that a pace takes where so many give such a rate."""
    pace, numbers = pace or Pace(), []
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
        24,
        *[16] * 8,
        24,
        16,
        16,
    ]


def test_what_brings_a_tenth_more_is_more():
    assert taken(lambda at_once: {8: 100, 16: 110, 24: 120}[at_once], measures=4) == [8, 16, 24, 16]
    assert taken(lambda at_once: {8: 100, 16: 109}[at_once], measures=3) == [8, 16, 8]


def test_what_a_store_gives_later_is_found_later():
    pace = Pace()
    taken(lambda _: 8, pace=pace)

    assert taken(lambda at_once: at_once, pace=pace)[-1] == MOST_AT_ONCE


def test_a_few_ranges_that_take_long_do_not_matter():
    pace = Pace()
    for at_once in (8, 16):
        for number in range(at_once):
            pace.took(5.0 if number % 3 == 0 else 0.1, at_once=at_once)

    assert pace.at_once == MOST_AT_ONCE


def test_ranges_among_another_number_say_nothing():
    pace = Pace()
    for _ in range(100):
        pace.took(0.1, at_once=7)

    assert pace.at_once == 8


def test_a_reader_takes_the_time_of_ranges_while_as_many_are_under_way(buffers, monkeypatch):
    monkeypatch.setattr(read_ahead.time, "perf_counter", lambda: 0.0)  # none takes longer
    file = Recorded(800, lambda _: time.sleep(0.005))
    pace = Pace()
    ahead = ReadAhead(file.read_into, file.size_bytes, pace)

    read_all(file, ahead)
    ahead.close()

    assert pace.at_once == MOST_AT_ONCE
    assert file.most_at_once == MOST_AT_ONCE


def test_what_is_started_is_fetched_within_what_others_left(buffers):
    first, second = Recorded(400, lambda _: time.sleep(0.001)), Recorded(50)
    ending = []
    one = ReadAhead(
        first.read_into, first.size_bytes, pace_of_most(), at_end=lambda: ending.append(two.start())
    )
    two = ReadAhead(second.read_into, second.size_bytes, pace_of_most())

    read_all(first, one)
    one.close()
    assert ending[-1]
    assert len(second.asked) == 13
    read_all(second, two)
    two.close()

    assert len(second.asked) == 13
