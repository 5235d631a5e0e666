"""Messages as the JSON that Kafka makes of them, compiled: bytes to text, by a table of steps.

What is sound and usual is written; all else is left to whoever decodes messages in Python, and
says what is wrong with them. A row of the table is a step; its columns::

    KIND          what is read and written, see below
    TEXT          where the text begins, in the texts, that is written first
    TEXT_BYTES    its length
    WIDTH         bytes of a number or of a length, VARINT: a length of a flexible version
    IS_NULLABLE   1: what has a negative length is null
    GOTO          the row that follows where it is not the next one
    SLOT          the first of the step's own slots in ``state``
    NUMBER        a field's tag; its place among the tagged fields; a member's newest version
    COUNT         tagged fields of a struct
    DEFAULT       what a tagged field is left out as: its name and value, in the texts
    DEFAULT_BYTES

A function gets each of its arguments in one type, and reads and writes single bytes by a place that
is never negative: so numba compiles little, and may check all bounds (``NUMBA_BOUNDSCHECK``).

Source: the ``read`` of generated messages, MessageDataGenerator, JsonConverterGenerator.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from kafka_segments.compiling import njit

# Columns of steps.
KIND, TEXT, TEXT_BYTES, WIDTH, IS_NULLABLE, GOTO, SLOT, NUMBER, COUNT, DEFAULT, DEFAULT_BYTES = (
    range(11)
)
STEP_COLUMNS = 11

VARINT = 0  # a width

# Kinds of steps. Values without a length:
BOOL, SIGNED, UNSIGNED, UUID = range(4)
# Values with a length, which may be null; GOTO lies behind what the value has within:
STRING, PROTOCOL_TYPE, BYTES, ARRAY, STRUCT, MEMBER = range(4, 10)
# The section of tagged fields: read how many there are, GOTO if none; read the tag of one, GOTO if
# none is left; GOTO unless that is the field's; put what was written of it in its place, and GOTO.
SECTION, TAG, TAGGED, PUT = range(10, 14)
NEXT = 14  # GOTO where an array has a further element
PLACE = 15  # remember where a tagged field is to be put
GO = 16  # GOTO
SKIP = 17  # pass over as many bytes as WIDTH, which are there
MEMBER_END = 18
END = 19  # of a message
WHOLE_END = 20  # of one that nothing may follow
OTHER = 21  # is left

# How a message was written; what a step gives is one of these, or the row of the next one.
WRITTEN = -1
NO_ROOM = -2
CUT = -3  # a decoder refuses the bytes
UNUSUAL = -4  # a decoder in Python may read them

# Slots of ``state`` before those of steps: the next byte, and where bytes end; where its text goes,
# and where text must end; whether a group is one of consumers. Of the member that is read: where
# its bytes begin (-1: none is), its text, where the bytes behind it end, and the row behind it.
_AT, _STOP, _TO, _ROOM, _IS_CONSUMER, _MEMBER, _MEMBER_TO, _MEMBER_STOP, _MEMBER_GOTO = range(9)
FIRST_SLOT = 9

# Slots of a section: fields that are left, the last one's tag, its text; then the fields' places.
_LEFT, _LAST_TAG, _BEGIN, PLACES = range(4)

# Instead of the row of a first step: there is no message, or none that is written here.
NOTHING, IS_LEFT = -1, -2

# A number that is handed on has numba's type of numbers: a function is compiled anew for another.
_FLEXIBLE, _VERSION_BYTES, _STANDARD, _OF_URLS, _ZEROTH = np.array((VARINT, 2, 0, 64, 0), np.int64)
_COMMA, _QUOTE, _BACKSLASH, _PADDING, _MINUS, _ZERO, _OPEN, _CLOSE = np.array(
    [*b',"\\=-0[]'], np.int64
)
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_BASE64 = np.frombuffer(_LETTERS + b"+/" + _LETTERS + b"-_", np.uint8)
_NULL, _TRUE, _FALSE = (np.frombuffer(word, np.uint8) for word in (b"null", b"true", b"false"))
_CONSUMER = np.frombuffer(b'"consumer"', np.uint8)
_MOST_FIXED = 64  # bytes of text beside names, strings and bytes
_MAX_INT16, _MAX_INT32 = 2**15 - 1, 2**31 - 1

_part = njit(_nrt=False)  # what is handed on counts no references: it makes no arrays
Steps = npt.NDArray[np.int64]
Letters = npt.NDArray[np.uint8]


@_part  # type: ignore[untyped-decorator]
def _byte(data: Any, at: Any) -> Any:
    return np.int64(data[np.uintp(at)])


@_part  # type: ignore[untyped-decorator]
def _store(out: Any, to: Any, byte: Any) -> Any:
    out[np.uintp(to)] = np.uint8(byte)
    return to + 1


@_part  # type: ignore[untyped-decorator]
def _copy(source: Any, at: Any, length: Any, out: Any, to: Any) -> Any:
    for k in range(length):
        _store(out, to + k, _byte(source, at + k))
    return to + length


@_part  # type: ignore[untyped-decorator]
def _signed(data: Any, at: Any, width: Any) -> Any:
    value = (_byte(data, at) ^ 0x80) - 0x80
    for k in range(1, width):
        value = value << 8 | _byte(data, at + k)
    return value


@_part  # type: ignore[untyped-decorator]
def _length(data: Any, at: Any, stop: Any, width: Any) -> Any:
    """Read a length, negative for null; return it and the next byte, or CUT or UNUSUAL for that.

    A varint is one more than the length.
    """
    if width != VARINT:
        if at + width > stop:
            return np.int64(0), np.int64(CUT)
        return _signed(data, at, width), at + width
    value = np.int64(0)
    for k in range(5):
        if at + k >= stop:
            return np.int64(0), np.int64(CUT)
        byte = _byte(data, at + k)
        value |= (byte & 0x7F) << (7 * k)
        if byte < 0x80 and value <= _MAX_INT32:
            return value - 1, at + k + 1
    return np.int64(0), np.int64(UNUSUAL)


@_part  # type: ignore[untyped-decorator]
def _number(value: Any, out: Any, to: Any) -> Any:
    left = np.uint64(value)
    if value < 0:
        to = _store(out, to, _MINUS)
        left = np.uint64(0) - left
    digits, rest = 1, left
    while rest >= np.uint64(10):
        rest //= np.uint64(10)
        digits += 1
    for k in range(digits):
        rest = left // np.uint64(10)
        _store(out, to + digits - 1 - k, _ZERO + np.int64(left - rest * np.uint64(10)))
        left = rest
    return to + digits


@_part  # type: ignore[untyped-decorator]
def _base64(data: Any, at: Any, length: Any, alphabet: Any, out: Any, to: Any) -> Any:
    """Write bytes in letters of six bits; what is no uuid is padded."""
    to = _store(out, to, _QUOTE)
    for bit in range(0, 8 * length, 6):
        k = bit >> 3
        word = _byte(data, at + k) << 8
        if k + 1 < length:
            word |= _byte(data, at + k + 1)
        to = _store(out, to, _byte(_BASE64, alphabet + (word >> (10 - (bit & 7)) & 0x3F)))
    if alphabet != _OF_URLS:
        for _ in range(-length % 3):
            to = _store(out, to, _PADDING)
    return _store(out, to, _QUOTE)


@_part  # type: ignore[untyped-decorator]
def _string(data: Any, at: Any, length: Any, out: Any, to: Any) -> Any:
    """Write ASCII as JSON; return where it ends, UNUSUAL where there are other letters."""
    to = _store(out, to, _QUOTE)
    for k in range(length):
        letter = _byte(data, at + k)
        if letter < 0x20 or letter >= 0x80:
            return np.int64(UNUSUAL)
        if letter in (_QUOTE, _BACKSLASH):
            to = _store(out, to, _BACKSLASH)
        to = _store(out, to, letter)
    return _store(out, to, _QUOTE)


@_part  # type: ignore[untyped-decorator]
def _is_text(data: Any, at: Any, length: Any, texts: Any, begin: Any, text_bytes: Any) -> Any:
    k, is_equal = 0, length == text_bytes
    while is_equal and k < length:
        is_equal = _byte(data, at + k) == _byte(texts, begin + k)
        k += 1
    return is_equal


@_part  # type: ignore[untyped-decorator]
def _word(word: Any, out: Any, to: Any) -> Any:
    return _copy(word, _ZEROTH, len(word), out, to)


@_part  # type: ignore[untyped-decorator]
def _single(steps: Any, row: Any, data: Any, out: Any, state: Any) -> Any:
    """Write a number or a uuid."""
    kind, width, at, to = steps[row, KIND], steps[row, WIDTH], state[_AT], state[_TO]
    if at + width > state[_STOP]:
        return CUT
    state[_AT] = at + width
    if kind == UUID:
        state[_TO] = _base64(data, at, width, _OF_URLS, out, to)
        return row + 1
    value = _signed(data, at, width)
    if kind == UNSIGNED:
        value &= (1 << (8 * width)) - 1
    if kind != BOOL:
        state[_TO] = _number(value, out, to)
    else:
        state[_TO] = _word(_TRUE if value else _FALSE, out, to)
    return row + 1


@_part  # type: ignore[untyped-decorator]
def _sized(steps: Any, row: Any, data: Any, out: Any, state: Any) -> Any:
    """Write a string or bytes, or begin an array, a struct that may be null, or a member."""
    kind, to = steps[row, KIND], state[_TO]
    length, at = _length(data, state[_AT], state[_STOP], steps[row, WIDTH])
    if at < 0:
        return at
    state[_AT] = at
    if length < 0:
        state[_TO] = _word(_NULL, out, to)
        return steps[row, GOTO] if steps[row, IS_NULLABLE] else CUT
    if kind == STRUCT:
        return row + 1
    if length > state[_STOP] - at or (kind <= PROTOCOL_TYPE and length > _MAX_INT16):
        return CUT
    if kind == ARRAY:
        state[_TO] = _store(out, to, _OPEN)
        state[steps[row, SLOT]] = length
        if length > 0:
            return row + 1
        state[_TO] = _store(out, to + 1, _CLOSE)
        return steps[row, GOTO]
    if to + 2 * length + _MOST_FIXED > state[_ROOM]:
        return NO_ROOM
    if kind == MEMBER and state[_IS_CONSUMER] and length >= _VERSION_BYTES:
        return _begin_member(steps, row, data, length, state)
    if kind >= BYTES:
        state[_TO] = _base64(data, at, length, _STANDARD, out, to)
    else:
        state[_TO] = _string(data, at, length, out, to)
        if state[_TO] < 0:
            return UNUSUAL
        if kind == PROTOCOL_TYPE:
            state[_IS_CONSUMER] = _is_text(
                out, to, state[_TO] - to, _CONSUMER, _ZEROTH, len(_CONSUMER)
            )
    state[_AT] = at + length
    return steps[row, GOTO]


@_part  # type: ignore[untyped-decorator]
def _begin_member(steps: Any, row: Any, data: Any, length: Any, state: Any) -> Any:
    """Begin the message that a member of a classic group wrote; return the step of its version.

    Source: DumpLogSegments.OffsetsMessageParser.
    """
    at = state[_AT]
    state[_MEMBER], state[_MEMBER_TO], state[_MEMBER_STOP] = at, state[_TO], state[_STOP]
    state[_AT], state[_STOP] = at + _VERSION_BYTES, at + length
    state[_MEMBER_GOTO] = steps[row, GOTO]
    return row + 1 + min(max(_signed(data, at, _VERSION_BYTES), 0), steps[row, NUMBER])


@_part  # type: ignore[untyped-decorator]
def _end_member(state: Any) -> Any:
    """Go on behind the bytes of a member."""
    state[_AT], state[_STOP], state[_MEMBER] = state[_STOP], state[_MEMBER_STOP], -1
    return state[_MEMBER_GOTO]


@_part  # type: ignore[untyped-decorator]
def _tagged(steps: Any, texts: Any, row: Any, data: Any, out: Any, state: Any) -> Any:
    """Read what comes between tagged fields."""
    kind, slot, goto = steps[row, KIND], steps[row, SLOT], steps[row, GOTO]
    if kind == TAGGED:
        return row + 1 if state[slot + _LAST_TAG] == steps[row, NUMBER] else goto
    if kind == PUT:
        return _put(steps, texts, row, out, state)
    if kind == TAG and state[slot + _LEFT] == 0:
        return goto
    number, at = _length(data, state[_AT], state[_STOP], _FLEXIBLE)
    number += 1
    if kind == TAG and at >= 0:
        _, at = _length(data, at, state[_STOP], _FLEXIBLE)
    if at < 0:
        return at
    state[_AT] = at
    if kind == SECTION:
        state[slot + _LEFT], state[slot + _LAST_TAG] = number, -1
        return row + 1 if number > 0 else goto
    if number <= state[slot + _LAST_TAG]:
        return UNUSUAL
    state[slot + _LEFT] -= 1
    state[slot + _LAST_TAG], state[slot + _BEGIN] = number, state[_TO]
    return row + 1


@_part  # type: ignore[untyped-decorator]
def _put(steps: Any, texts: Any, row: Any, out: Any, state: Any) -> Any:
    """Move the text of a tagged field to its place, or leave out a default."""
    slot, end = steps[row, SLOT], state[_TO]
    begin, places = state[slot + _BEGIN], slot + PLACES
    place, length = state[places + steps[row, NUMBER]], end - begin
    if _is_text(out, begin, length, texts, steps[row, DEFAULT], steps[row, DEFAULT_BYTES]):
        state[_TO] = begin
        return steps[row, GOTO]
    if place < begin:
        if end + length > state[_ROOM]:
            return NO_ROOM
        _copy(out, begin, length, out, end)
        for at in range(end - 1, place + length - 1, -1):
            _store(out, at, _byte(out, at - length))
        _copy(out, end, length, out, place)
    for later in range(steps[row, NUMBER] + 1, steps[row, COUNT]):
        state[places + later] += length
    return steps[row, GOTO]


@_part  # type: ignore[untyped-decorator]
def _between(steps: Any, row: Any, data: Any, out: Any, state: Any) -> Any:
    """Take a step that writes no field."""
    kind, slot, goto = steps[row, KIND], steps[row, SLOT], steps[row, GOTO]
    if kind == NEXT:
        state[slot] -= 1
        has_next = state[slot] > 0
        state[_TO] = _store(out, state[_TO], _COMMA if has_next else _CLOSE)
        return goto if has_next else row + 1
    if kind == PLACE:
        state[slot] = state[_TO]
        return row + 1
    if kind == SKIP:
        state[_AT] += steps[row, WIDTH]
        return row + 1
    if kind == MEMBER_END and _signed(data, state[_MEMBER], _VERSION_BYTES) <= steps[row, NUMBER]:
        return _end_member(state)
    if kind == END or (kind == WHOLE_END and state[_AT] == state[_STOP]):
        return WRITTEN
    return goto if kind == GO else UNUSUAL


@_part  # type: ignore[untyped-decorator]
def _step(steps: Any, texts: Any, row: Any, data: Any, out: Any, state: Any) -> Any:
    """Take a step; return the next one, or how the message was written."""
    kind, text_bytes = steps[row, KIND], steps[row, TEXT_BYTES]
    if state[_TO] + text_bytes + _MOST_FIXED > state[_ROOM]:
        return NO_ROOM
    state[_TO] = _copy(texts, steps[row, TEXT], text_bytes, out, state[_TO])
    if kind <= UUID:
        return _single(steps, row, data, out, state)
    if kind <= MEMBER:
        return _sized(steps, row, data, out, state)
    if kind <= PUT:
        return _tagged(steps, texts, row, data, out, state)
    return _between(steps, row, data, out, state)


@_part  # type: ignore[untyped-decorator]
def _write(steps: Any, texts: Any, row: Any, data: Any, out: Any, state: Any) -> Any:
    """Write the message whose first step is ``row``; what a member wrote as bytes if it is none."""
    while row >= 0:
        row = _step(steps, texts, row, data, out, state)
        at = state[_MEMBER]
        if row == CUT and at >= 0:
            length, to = state[_STOP] - at, state[_MEMBER_TO]
            state[_TO] = _base64(
                data, at, length, _STANDARD, out, to
            )  # it had room when it was begun
            state[_AT] = state[_STOP]
            row = _end_member(state)
    return row


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def write_texts(
    steps: Any,
    texts: Any,
    data: Any,
    stops: Any,
    messages: Any,
    first: Any,
    out: Any,
    ends: Any,
    state: Any,
) -> Any:
    """Write messages from ``first`` on, as many as have room; return the row behind the last.

    ``messages``: the row of each one's first step; IS_LEFT is put in its place where the message is
    not written, such as one that alone has no room. ``stops``, ``ends``: where its bytes end in
    ``data``, its text in ``out``, behind a first one.
    """
    until, to = min(len(messages), first + len(ends) - 1), 0
    for row in range(first, until):
        if messages[row] >= 0:
            state[_AT], state[_STOP] = stops[row], stops[row + 1]
            state[_TO], state[_ROOM] = to, len(out)
            state[_IS_CONSUMER], state[_MEMBER] = 0, -1
            status = _write(steps, texts, messages[row], data, out, state)
            if status == NO_ROOM and row > first:
                return row
            if status == WRITTEN:
                to = state[_TO]
            else:
                messages[row] = IS_LEFT
        ends[row - first + 1] = to
    return until
