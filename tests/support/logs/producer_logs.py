"""Logs of idempotent and transactional producers, drawn: runs of one, many in turn, markers."""

import random
import struct

from support.logs.strategies import CONTROL, TRANSACTIONAL, v2_batch

FIRST_MS = 1_700_000_000_000


def producer_log(draw: random.Random) -> bytes:
    """Draw batches of a few or many producers, some of whose numbers want the same slot.

    A producer's data is mostly of one kind, and now and then of the other: a broker refuses data
    outside of a transaction that is open.
    """
    count = draw.choice([1, 2, 10, 300])
    step = draw.choice([1, 1, 128, 256])
    mixes, markers = draw.choice([0, 0, 0.02]), draw.choice([0, 0.02, 0.3])
    kinds = [draw.choice([0, TRANSACTIONAL]) for _ in range(count)]
    in_turn, log, offset, leader_epoch = draw.random() < 0.5, [], 0, 0
    for number in range(draw.choice([5, 60, 400])):
        chosen = number % count if in_turn else draw.randrange(count)
        producer = {
            "producer_id": -1 if draw.random() < 0.02 else chosen * step,
            "producer_epoch": draw.choice([0] * 30 + [1]),
        }
        clock = FIRST_MS + draw.choice([number, -number, 7])
        offset += draw.choice([0] * 9 + [4])
        if draw.random() < markers and kinds[chosen]:
            key = struct.pack(">hh", 0, draw.randrange(2))
            records = [(clock, key, struct.pack(">hi", 0, draw.randrange(3)))]
            log.append(v2_batch(offset, records, flags=CONTROL | TRANSACTIONAL, **producer))
        else:
            leader_epoch += draw.random() < 0.01
            records = [(clock, None, b"x" * draw.choice([9, 9, 80]))] * draw.choice([1, 1, 3])
            log.append(
                v2_batch(
                    offset,
                    records,
                    flags=kinds[chosen] ^ (TRANSACTIONAL if draw.random() < mixes else 0),
                    leader_epoch=leader_epoch,
                    base_sequence=draw.choice([number, 2**31 - 1, -1]),
                    **producer,
                )
            )
        offset += len(records)
    return b"".join(log)
