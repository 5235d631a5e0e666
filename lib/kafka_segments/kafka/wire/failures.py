"""Why the records of a batch cannot be decoded: codes for the compiled checks, and their words."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kafka_segments.compiling import njit

OK = 0
BAD_COUNT = 1
COUNT_TOO_GREAT = 2
VARINT_PAST_END = 3
VARINT_TOO_LONG = 4
RECORD_NEGATIVE = 5
RECORD_PAST_END = 6
KEY_PAST_END = 7
VALUE_PAST_END = 8
HEADER_COUNT_NEGATIVE = 9
HEADER_COUNT_TOO_GREAT = 10
HEADER_KEY_NEGATIVE = 11
HEADER_PAST_END = 12
LEFT_IN_RECORD = 13
LEFT_IN_BATCH = 14
INNER_TOO_SMALL = 15
INNER_COMPRESSED = 16
NO_INNER_MESSAGES = 17
BAD_WRAPPER_OFFSET = 18
BAD_LEGACY_MAGIC = 19
ATTRIBUTES_PAST_END = 20

# Slots of a failure (int64).
CODE, FOUND, EXPECTED, AT = 0, 1, 2, 3
FAILURE_SLOTS = 4

_WORDS = {
    BAD_COUNT: "record count is {found}, it cannot be negative",
    COUNT_TOO_GREAT: "record count is {found}, the bytes hold at most {expected}",
    VARINT_PAST_END: "a varint reaches past the end",
    VARINT_TOO_LONG: "a varint has no end after {expected} bytes",
    RECORD_NEGATIVE: "record length is {found}, it cannot be negative",
    RECORD_PAST_END: "a record says {found} bytes, {expected} are left",
    KEY_PAST_END: "a key says {found} bytes, {expected} are left in its record",
    VALUE_PAST_END: "a value says {found} bytes, {expected} are left in its record",
    HEADER_COUNT_NEGATIVE: "header count is {found}, it cannot be negative",
    HEADER_COUNT_TOO_GREAT: "header count is {found}, the record has room for {expected}",
    HEADER_KEY_NEGATIVE: "the length of a header's key is {found}, it cannot be negative",
    HEADER_PAST_END: "a header says {found} bytes, {expected} are left in its record",
    LEFT_IN_RECORD: "a record says {found} bytes, its fields take {expected}",
    LEFT_IN_BATCH: "{found} bytes are left after the last of {expected} records",
    INNER_TOO_SMALL: "a message has {found} bytes, the least is {expected}",
    INNER_COMPRESSED: "an inner message is compressed, codec {found}",
    NO_INNER_MESSAGES: "the message set is empty",
    BAD_WRAPPER_OFFSET: "offset {found} is below its last inner message's {expected}",
    BAD_LEGACY_MAGIC: "magic is {found}, 0 or 1 expected",
    ATTRIBUTES_PAST_END: "a record of length {found} has no room for its attributes",
}


@njit(forceinline=True)  # type: ignore[untyped-decorator]
def fail(failure: Any, code: Any, found: Any, expected: Any, at: Any) -> Any:
    """Note a failure; return its code."""
    failure[CODE] = code
    failure[FOUND] = found
    failure[EXPECTED] = expected
    failure[AT] = at
    return np.int64(code)


def describe(failure: npt.NDArray[np.int64], *, section: str, start: int) -> str:
    """Return in words what is wrong, and at which byte of the section that begins at ``start``."""
    code, found, expected, at = failure.tolist()
    words = _WORDS[code].format(found=found, expected=expected)
    return f"{words} (at byte {at - start} of the {section})"
