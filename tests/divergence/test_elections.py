"""What is lost with each replica that could lead, against a plain count over drawn logs."""

import random
from dataclasses import replace
from itertools import takewhile

import pytest

from kafka_segments.verbs.copies.divergence.decide.logs import compare_log
from kafka_segments.verbs.copies.divergence.decide.transactions import (
    ClientBatch,
    torn_transactions,
)
from kafka_segments.verbs.copies.divergence.elect.decide.candidates import (
    PartitionCopies,
    Registration,
    Term,
)
from kafka_segments.verbs.copies.divergence.elect.decide.elections import Advice, Way, advise
from kafka_segments.verbs.copies.divergence.log_reading.batch_facts import BatchFactsReader
from support.logs.log_copies import (
    HOLES,
    Batch,
    LogCopy,
    cut_epochs,
    drawn_log,
    drawn_transactions,
    epochs_of,
    flipped,
    forked,
    hurt,
    inserted,
    read_log,
    rolled,
    with_hole,
    without,
)

ROUNDS = 10


def advised(registered: Registration, copies: dict[int, LogCopy], *, range_bits: int = 5) -> Advice:
    """Read the copies, and give the advice; replicas without one are absent."""
    absent = tuple(broker for broker in registered.replicas if broker not in copies)
    registered = registered._replace(absent=absent)
    named = {f"n{broker}": copy for broker, copy in copies.items()}
    read = read_log(named, range_bits=range_bits)
    by_broker = {int(copy.name[1:]): copy for copy in read.copies}
    rows = compare_log(read.copies, read.ranges, read.files, read.keys)
    with BatchFactsReader(read.open_log) as facts:
        return advise(registered, PartitionCopies(by_broker, read.batches(), rows), facts.of)


def plainly_lost(leader: list[Batch], others: list[list[Batch]]) -> set[Batch]:
    """Give the batches of others behind the point at which they and the leader go apart."""
    lost = set()
    for other in others:
        both = zip(leader, other, strict=False)
        common = len(list(takewhile(lambda pair: pair[0] == pair[1], both)))
        lost |= set(other[common:])
    return lost - set(leader)


def count(batches: set[Batch]) -> int:
    """Count records."""
    return sum(len(batch.records) for batch in batches)


def _drawn(rng: random.Random) -> dict[int, list[Batch]]:
    """Draw the logs of three replicas: some lag, leaders may have gone on, one after another."""
    log = drawn_log(rng)
    leader, follower, next_leader = rng.sample([1, 2, 3], 3)
    logs = {broker: log[: rng.randint(30, 60)] for broker in (1, 2, 3)}
    if rng.random() < 0.7:
        logs[leader] = forked(rng, log, rng.randint(29, 59))
        logs[follower] = rng.choice([logs[follower], logs[leader][: rng.randint(29, 60)]])
    if rng.random() < 0.3:
        logs[next_leader] = forked(rng, logs[leader], rng.randint(20, len(logs[leader]) - 1))
    return logs


@pytest.mark.slow
def test_what_is_lost_is_what_lies_behind_the_point_at_which_logs_go_apart(seed: int) -> None:
    rng = random.Random(f"{seed} elections")
    for _ in range(3 * ROUNDS):
        logs = _drawn(rng)
        copies = {broker: rolled(rng, log) for broker, log in logs.items()}
        marks = {
            broker: rng.choice([None, log[-9].base, log[-9].base, log[-1].last + 20])
            for broker, log in logs.items()
        }
        for broker, copy in copies.items():
            copy.high_watermark = marks[broker]
        isr = tuple(rng.sample([1, 2, 3], rng.randint(1, 3)))

        advice = advised(Registration((1, 2, 3), isr), copies)

        # What a checkpoint claims and no log holds is lost with each.
        mark = max((marks[broker] or 0 for broker in logs), default=0)
        end = max(log[-1].last + 1 for log in logs.values())
        claimed = max(mark - end, 0)
        in_all = set.intersection(*(set(logs[broker]) for broker in isr))
        committed = {
            batch
            for broker, log in logs.items()
            for batch in log
            if marks[broker] is not None and batch.base < marks[broker]
        }
        for one in advice.candidates:
            own = logs[one.broker_id]
            lost = plainly_lost(own, list(logs.values()))
            assert one.lost_records == count(lost) + claimed
            assert one.lost_acks_all_records == count(lost & (in_all | committed)) + claimed
            assert one.lost_committed_records == count(lost & committed) + claimed
            first = min((batch.base for batch in lost), default=end)
            assert one.first_lost == (first if lost or claimed else None)
        assert [one.cost for one in advice.candidates] == sorted(
            one.cost for one in advice.candidates
        )


def test_what_is_said_without_a_replica_is_no_more_than_all_say(seed: int) -> None:
    rng = random.Random(f"{seed} left out")
    for _ in range(ROUNDS):
        copies = {broker: rolled(rng, log) for broker, log in _drawn(rng).items()}
        registered = Registration((1, 2, 3), tuple(rng.sample([1, 2, 3], rng.randint(1, 3))))
        whole = {one.broker_id: one for one in advised(registered, copies).candidates}
        for left_out in copies:
            part = advised(registered, {at: copies[at] for at in copies if at != left_out})

            for one in part.candidates:
                assert one.lost_records <= whole[one.broker_id].lost_records
                assert one.damages == whole[one.broker_id].damages


@pytest.fixture
def rng(seed: int) -> random.Random:
    return random.Random(f"{seed} way")


@pytest.fixture
def log(rng: random.Random) -> list[Batch]:
    return drawn_log(rng)


def test_a_replica_in_the_isr_that_loses_nothing_is_left_to_the_controller(rng, log) -> None:
    copies = {1: rolled(rng, log), 2: rolled(rng, log), 3: rolled(rng, log[:40])}
    advice = advised(Registration((3, 2, 1), (1, 2)), copies)

    assert (advice.way, advice.hold_back, advice.replicas) == (Way.BY_ITSELF, (), ())
    assert [one.broker_id for one in advice.candidates] == [2, 1, 3]
    assert [one.lost_acks_all_records for one in advice.candidates[:2]] == [0, 0]
    assert advice.candidates[2].lost_acks_all_records == sum(len(one.records) for one in log[40:])


def test_one_in_the_isr_that_lost_its_tail_waits_until_the_better_one_is_elected(rng, log) -> None:
    copies = {1: rolled(rng, log[:30]), 2: rolled(rng, log)}
    advice = advised(Registration((1, 2, 3), (1, 2)), copies)

    assert (advice.way, advice.hold_back) == (Way.UNCLEAN, (1,))
    assert advice.candidates[0].broker_id == 2


def test_while_another_of_the_isr_is_not_at_hand_a_killed_broker_has_to_be_elected(
    rng, log
) -> None:
    copies = {1: rolled(rng, log[:30]), 2: rolled(rng, log)}
    advice = advised(Registration((1, 2, 3), (1, 2, 3)), copies)

    assert (advice.way, advice.hold_back, advice.replicas) == (Way.UNCLEAN, (1,), ())
    assert advice.candidates[0].broker_id == 2


def test_one_outside_of_the_isr_is_elected_uncleanly_and_put_first(rng, log) -> None:
    copies = {2: rolled(rng, log[:30]), 3: rolled(rng, log[:50])}
    advice = advised(Registration((1, 2, 3), (1,)), copies)

    assert (advice.way, advice.hold_back, advice.replicas) == (Way.UNCLEAN, (), (3, 1, 2))
    assert advised(Registration((1, 3, 2), (1,)), copies).replicas == ()


def test_where_unclean_elections_are_enabled_whoever_would_be_first_is_held_back(rng, log) -> None:
    copies = {2: rolled(rng, log[:30]), 3: rolled(rng, log[:50])}
    registered = Registration((1, 2, 3), (1,), elects_any=True)
    advice = advised(registered, copies)

    assert (advice.way, advice.hold_back, advice.replicas) == (Way.UNCLEAN, (2,), ())
    advice = advised(Registration((2, 3), (3,), elects_any=True), copies)
    assert (advice.way, advice.hold_back) == (Way.UNCLEAN, (2,))  # it may run before the ISR does


def test_the_last_of_the_isr_that_comes_back_empty_is_held_back(rng, log) -> None:
    copies = {1: rolled(rng, log[:1]), 2: rolled(rng, log)}
    advice = advised(Registration((1, 2), (1,)), copies)

    assert (advice.way, advice.hold_back, advice.replicas) == (Way.UNCLEAN, (1,), ())


def test_an_eligible_replica_needs_no_unclean_election(rng, log) -> None:
    copies = {1: rolled(rng, log), 2: rolled(rng, log)}

    assert advised(Registration((1, 2, 3), (), (2,)), copies).way == Way.BY_ITSELF


def test_an_eligible_replica_that_loses_more_waits_too(rng, log) -> None:
    copies = {1: rolled(rng, log[:30]), 2: rolled(rng, log), 3: rolled(rng, log[:20])}
    advice = advised(Registration((3, 1, 2), (2,), (1,)), copies)

    assert (advice.way, advice.hold_back, advice.replicas) == (Way.UNCLEAN, (1,), (2, 3, 1))


def test_what_acks_all_was_told_counts_before_what_lies_below_an_older_checkpoint(rng, log) -> None:
    """Broker 1, the whole ISR, lost a segment below the mark; broker 2 ends above the mark."""
    front = without(rng, log, 20, 22)
    copies = {1: front, 2: rolled(rng, log[:45])}
    for copy in copies.values():
        copy.high_watermark = log[45].base
    advice = advised(Registration((1, 2), (1,)), copies)

    few, many = count(set(log[20:22])), count(set(log[45:]))
    best = 1 if few < many else 2
    assert [one.broker_id for one in advice.candidates] == [best, 3 - best]
    by_broker = {one.broker_id: one for one in advice.candidates}
    told = [(one.lost_acks_all_records, one.lost_committed_records) for one in by_broker.values()]
    assert sorted(told) == sorted([(few, few), (many, 0)])


def test_damage_counts_as_lost_where_another_copy_is_sound(rng, log) -> None:
    hurt = rolled(rng, log)
    parts = hurt.segments[0][1]
    hurt.spoil(0, b"".join([flipped(parts[0], 70), *parts[1:]]))
    advice = advised(Registration((1, 2), (1, 2)), {1: hurt, 2: rolled(rng, log)})

    assert (advice.way, advice.candidates[0].broker_id) == (Way.UNCLEAN, 2)
    assert advice.candidates[1].damages == 1
    assert advice.candidates[1].lost_records == len(log[0].records)


def test_a_replica_that_lost_a_segment_behind_a_fork_leads_last_of_its_side(seed: int) -> None:
    rng = random.Random(f"{seed} gaps")
    for _ in range(ROUNDS):
        older = drawn_log(rng)
        at = rng.randint(1, 50)
        newer = forked(rng, older, at, more=12)
        lost = sorted(rng.sample(range(at, at + 11), 2))
        whole = rolled(rng, newer)
        whole.high_watermark = newer[-1].last + 1
        copies = {1: rolled(rng, older), 2: whole, 3: without(rng, newer, *lost)}
        advice = advised(Registration((3, 2, 1), (2, 3)), copies)

        by_broker = {one.broker_id: one for one in advice.candidates}
        gone, cut_off = count(set(newer[slice(*lost)])), count(set(older[at:]))
        assert [one.broker_id for one in advice.candidates] == [2, 3, 1]
        assert (by_broker[2].lost_records, by_broker[2].damages) == (cut_off, 0)
        assert (by_broker[3].lost_records, by_broker[3].damages) == (cut_off + gone, 1)
        assert by_broker[3].lost_committed_records == gone
        assert advice.hold_back == (3,)


def test_a_replica_that_is_hurt_at_a_fork_goes_apart_from_the_other_side_alone(seed: int) -> None:
    rng = random.Random(f"{seed} hurt at the fork")
    for _ in range(ROUNDS):
        older = drawn_log(rng)
        at = rng.randint(1, 50)
        newer = forked(rng, older, at, more=12)
        copies = {1: rolled(rng, older), 2: rolled(rng, newer), 3: hurt(rng, newer, at)}
        for copy in copies.values():
            copy.epochs = ()
        advice = advised(Registration((3, 2, 1), (2, 3)), copies)

        lost = {one.broker_id: one.lost_records for one in advice.candidates}
        cut_off, own = count(set(older[at:])), count(set(newer[at:]))
        assert lost == {1: own, 2: cut_off, 3: cut_off + count({newer[at]})}


def test_of_the_last_copy_what_its_checkpoint_claims_and_it_lacks_is_lost(rng, log) -> None:
    for number in (0, 30, 58):
        last = hurt(rng, log[:59], number)
        last.high_watermark = log[59].base + 3
        advice = advised(Registration((1, 2, 3), (1, 2)), {1: last})

        gone = len(log[number].records) + 3
        [one] = advice.candidates
        assert (one.lost_records, one.lost_committed_records, one.damages) == (gone, gone, 1)
        assert one.first_lost == log[number].base
        assert advice.way == Way.UNCLEAN


def test_what_is_damaged_above_the_high_watermark_is_not_known_to_be_lost(rng, log) -> None:
    last = hurt(rng, log, 30)
    last.high_watermark = log[30].base
    advice = advised(Registration((1,), (1,)), {1: last})

    [one] = advice.candidates
    assert (one.lost_records, one.damages) == (0, 1)


def test_records_that_retention_took_from_one_are_not_lost(rng, log) -> None:
    late = rolled(rng, log)
    late.log_start = log[20].base
    advice = advised(Registration((1, 2), (1, 2)), {1: late, 2: rolled(rng, log)})

    assert [one.lost_records for one in advice.candidates] == [0, 0]


def test_records_of_a_first_segment_that_was_lost_are_lost_with_its_replica(rng, log) -> None:
    front = rolled(rng, log[20:])
    front.high_watermark = log[-1].last + 1
    front.epochs = epochs_of(log)
    advice = advised(Registration((1, 2), (1, 2)), {1: front, 2: rolled(rng, log)})

    assert (advice.candidates[0].broker_id, advice.candidates[0].lost_records) == (2, 0)
    assert advice.candidates[1].lost_records == count(set(log[:20]))
    assert advice.candidates[1].first_lost == log[0].base
    front.epochs = cut_epochs(front.epochs, log[20].base)
    advice = advised(Registration((1, 2), (1, 2)), {1: front, 2: rolled(rng, log)})
    assert [one.lost_records for one in advice.candidates] == [0, 0]


def test_records_that_an_earlier_election_cut_off_are_lost_with_the_newer_leader(rng, log) -> None:
    newer = rolled(rng, log[:40])
    newer.epochs = (*epochs_of(log[:40]), (log[-1].epoch + 1, log[40].base))
    advice = advised(Registration((1, 2), (1,)), {1: newer, 2: rolled(rng, log)})

    by_broker = {one.broker_id: one for one in advice.candidates}
    assert by_broker[1].lost_records == sum(len(one.records) for one in log[40:])
    assert by_broker[1].lost_acks_all_records == 0
    assert by_broker[2].lost_records == 0
    assert advice.way == Way.BY_ITSELF or advice.candidates[0].broker_id == 2


@pytest.mark.parametrize(
    ("members", "is_told"),
    [((1,), True), ((1, 3), True), ((1, 2), False), ((1, 2, 3), False), ((3,), False)],
)
def test_acks_all_may_have_been_told_of_what_the_isr_of_the_batchs_epoch_held(
    rng, log, members: tuple[int, ...], *, is_told: bool
) -> None:
    epochs = sorted({batch.epoch for batch in log})
    fork = [*log[:40], *(replace(one, epoch=epochs[-1] + 2) for one in forked(rng, log, 40)[40:])]
    newer = rolled(rng, fork)
    copies = {1: rolled(rng, log), 2: newer, 3: newer}
    terms = [Term(epoch, 1, members) for epoch in epochs]
    terms += [Term(epochs[-1] + 1, -1, members), Term(epochs[-1] + 2, 2, (2, 3))]
    advice = advised(Registration((1, 2, 3), (2, 3), (), tuple(terms)), copies)

    by_broker = {one.broker_id: one for one in advice.candidates}
    lost = sum(len(one.records) for one in log[40:])
    assert by_broker[2].lost_records == lost
    assert by_broker[2].lost_acks_all_records == (lost if is_told else 0)
    assert by_broker[1].lost_acks_all_records == by_broker[1].lost_records > 0


DATA = ClientBatch(3, 7)
COMMIT, ABORT = ClientBatch(0, 7, True), ClientBatch(0, 7, False)


@pytest.mark.parametrize(
    ("lost", "torn", "torn_if_open"),
    [
        ([], 0, 0),
        ([ClientBatch(3)], 0, 0),
        ([DATA], 1, 1),  # it will end without these records
        ([DATA, COMMIT], 1, 1),
        ([COMMIT], 1, 1),  # its records stay open
        ([ABORT], 1, 1),
        ([DATA, ABORT], 0, 1),  # the records in front stay open
        ([DATA, ABORT, DATA, DATA, ABORT], 0, 1),
        ([DATA, ABORT, DATA, DATA, COMMIT], 1, 2),
        ([ABORT, DATA, ClientBatch(1, 8)], 3, 3),
    ],
)
def test_transactions_that_are_torn(lost: list[ClientBatch], torn: int, torn_if_open: int) -> None:
    assert torn_transactions(lost, lambda _: False) == torn
    assert torn_transactions(lost, lambda _: True) == torn_if_open


def _transactions(logs: list[list[Batch]]) -> list[set[Batch]]:
    """Give the batches of each transaction that begins in some log, with its marker."""
    found: dict[Batch, set[Batch]] = {}
    for log in logs:
        first: dict[int, Batch] = {}
        for batch in log:
            if batch.producer_id is None:
                continue
            begun = first.setdefault(batch.producer_id, batch)
            found.setdefault(begun, set()).add(batch)
            if batch.is_commit is not None:
                del first[batch.producer_id]
    return list(found.values())


def test_transactions_are_torn_of_which_the_leader_lacks_a_part(seed: int) -> None:
    rng = random.Random(f"{seed} torn")
    seen = set()
    for _ in range(3 * ROUNDS):
        log = drawn_transactions(rng)
        logs = {broker: log[: rng.randint(30, 60)] for broker in (1, 2)}
        logs[3] = rng.choice([log, forked(rng, log, rng.randint(30, 59))])
        copies = {broker: rolled(rng, own) for broker, own in logs.items()}

        advice = advised(Registration((1, 2, 3), (1, 2, 3)), copies, range_bits=12)

        for one in advice.candidates:
            lost = plainly_lost(logs[one.broker_id], list(logs.values()))
            torn = 0
            for batches in _transactions(list(logs.values())):
                is_aborted = any(batch.is_commit is False for batch in batches)
                torn += bool(batches & lost) and not (is_aborted and batches <= lost)
            assert one.torn_transactions == torn
            assert one.lost_records == count(lost)
            seen.add(torn)

    assert len(seen) > 2


@pytest.mark.parametrize("what", HOLES)
def test_what_lies_in_a_hole_is_lost_with_the_copy_that_has_it(seed: int, what: str) -> None:
    rng = random.Random(f"{seed} {what} hole")
    for _ in range(ROUNDS):
        log = drawn_transactions(rng) if what == "marker" else drawn_log(rng)
        hole = with_hole(rng, log, what)
        copies = {1: rolled(rng, log), 2: hole.copy, 3: rolled(rng, log)}
        for copy in copies.values():
            copy.high_watermark = log[-1].last + 1
            copy.has_cleaner_checkpoint = rng.random() < 0.5
        advice = advised(Registration((1, 2, 3), (1, 2, 3)), copies)

        gone = count({one for one in log if hole.base <= one.base < hole.until})
        lost = {one.broker_id: one.lost_committed_records for one in advice.candidates}
        assert lost == {1: 0, 2: 1 if what == "record" else gone, 3: 0}
        assert advice.candidates[-1].broker_id == 2
        if what == "marker":
            assert advice.candidates[-1].torn_transactions == 1


def test_a_copy_into_which_a_batch_was_inserted_holds_nothing_to_lose(seed: int) -> None:
    rng = random.Random(f"{seed} inserted")
    for _ in range(ROUNDS):
        log = drawn_log(rng)
        wrong = rolled(rng, inserted(log, rng.randint(1, 50)))
        copies = {1: wrong, 2: rolled(rng, log), 3: rolled(rng, log)}
        for copy in copies.values():
            copy.high_watermark = log[-1].last + 1
        advice = advised(Registration((1, 2, 3), (1, 2, 3)), copies)

        lost = {one.broker_id: one.lost_records for one in advice.candidates}
        assert lost[2] == lost[3] == 0 < lost[1]
