"""The stand-ins for intrinsics: what they read, store and compute, without anything compiled."""

import numpy as np
import pytest

from kafka_segments.kafka.wire import native_in_python as in_python
from support.logs import strategies

DATA = np.array([0x00, *range(0x81, 0x8A)], dtype=np.uint8)  # from byte 1 on the sign bit is set
SIGNED = {
    in_python.load_i16: -0x7E7E,
    in_python.load_i32: -0x7E7D7C7C,
    in_python.load_i64: -0x7E7D7C7B7A797878,
}


@pytest.fixture(params=["array", "address"])
def data(request):
    """The bytes themselves, or where they lie."""
    return DATA if request.param == "array" else in_python.address_of(DATA)


@pytest.mark.parametrize("load", SIGNED)
def test_signed_numbers_are_widened_to_int64(data, load):
    found = load(data, np.int64(1))

    assert (found, type(found)) == (SIGNED[load], np.int64)


def test_unsigned_numbers_have_their_own_types(data):
    found = [
        in_python.load_u8(data, 9),
        in_python.load_u32(data, 1),
        in_python.load_u64_le(data, 2),
    ]

    assert found == [0x89, 0x81828384, 0x8988878685848382]
    assert [type(number) for number in found] == [np.uint8, np.uint64, np.uint64]


def test_a_byte_is_stored_behind_an_address():
    data = np.zeros(4, dtype=np.uint8)

    in_python.store_u8(in_python.address_of(data), np.int64(2), np.uint8(0x81))

    assert data.tolist() == [0, 0, 0x81, 0]


@pytest.mark.parametrize("length", [0, 1, 8, 19])
def test_the_steps_make_a_crc32c(length):
    data = bytes(range(200, 200 + length))
    register = np.uint64(0xFFFFFFFF)

    for at in range(0, length // 8 * 8, 8):
        register = in_python.crc32c_step_8(
            register, np.uint64(int.from_bytes(data[at : at + 8], "little"))
        )
    for byte in data[length // 8 * 8 :]:
        register = in_python.crc32c_step_1(register, np.uint8(byte))

    assert int(register) ^ 0xFFFFFFFF == strategies.crc32c(data)
    assert isinstance(register, np.uint64)


@pytest.mark.parametrize(
    ("one", "other", "product"),
    [(0, 7, 0), (1, 7, 7), (3, 3, 5), (1 << 63, 3, 1 << 63), (6, 5, 30)],
)
def test_the_carryless_product_is_cut_to_8_bytes(one, other, product):
    found = in_python.carryless_product(np.uint64(one), np.uint64(other))

    assert (found, type(found)) == (product, np.uint64)
