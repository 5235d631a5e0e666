"""Checksums: by the CPU's instruction, by tables, and in pieces."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.kafka.wire import crc, native
from support.logs import strategies

BYTES = np.random.default_rng(7).integers(0, 256, 12_000, dtype=np.uint8).tobytes()
WAYS = [
    pytest.param(
        True,
        id="instruction",
        marks=pytest.mark.skipif(not crc.HAS_CPU_CRC, reason="the CPU has no CRC-32C"),
    ),
    pytest.param(False, id="tables"),
]
# From RFC 3720, B.4, but for the first, which is the usual check value.
KNOWN_CRC32C = [
    pytest.param(b"123456789", 0xE3069283, id="check value"),
    pytest.param(bytes(32), 0x8A9136AA, id="zeros"),
    pytest.param(b"\xff" * 32, 0x62A8AB43, id="ones"),
    pytest.param(bytes(range(32)), 0x46DD794E, id="rising"),
    pytest.param(bytes(range(31, -1, -1)), 0x113FDB5C, id="falling"),
    pytest.param(b"", 0, id="nothing"),
]


def crc32c_in_pieces(data: bytes, cuts: list[int], *, by_instruction: bool) -> int:
    running = np.uint64(crc.CRC_START)
    view = np.frombuffer(data, dtype=np.uint8)
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        running = np.uint64(crc.crc32c_update(view, start, end, running, by_instruction))
    return int(running) ^ crc.CRC_START


def crc32_in_pieces(data: bytes, cuts: list[int]) -> int:
    running = np.uint64(crc.CRC_START)
    view = np.frombuffer(data, dtype=np.uint8)
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        running = np.uint64(crc.crc32_update(view, start, end, running))
    return int(running) ^ crc.CRC_START


@pytest.mark.parametrize("by_instruction", WAYS)
@pytest.mark.parametrize(("data", "expected"), KNOWN_CRC32C)
def test_crc32c_of_known_vectors(data, expected, by_instruction):
    found = crc.crc32c(data, by_instruction=by_instruction)

    assert found == expected


@pytest.mark.parametrize("by_instruction", WAYS)
def test_crc32c_of_every_length_up_to_1200_is_the_plain_loops(by_instruction):
    expected = [strategies.crc32c(BYTES[:length]) for length in range(1201)]

    found = [crc.crc32c(BYTES[:length], by_instruction=by_instruction) for length in range(1201)]

    assert found == expected


@pytest.mark.parametrize("by_instruction", WAYS)
@pytest.mark.parametrize("length", [3071, 3072, 3073, 3455, 3456, 6144, 6528, 11_999])
def test_crc32c_of_lengths_around_the_long_lanes_is_the_plain_loops(length, by_instruction):
    expected = strategies.crc32c(BYTES[:length])

    found = crc.crc32c(BYTES[:length], by_instruction=by_instruction)

    assert found == expected


@pytest.mark.parametrize("start", range(8))
@pytest.mark.parametrize("by_instruction", WAYS)
def test_crc32c_needs_no_aligned_start(start, by_instruction):
    view = np.frombuffer(BYTES, dtype=np.uint8)[start : start + 500]

    found = crc.crc32c(view, by_instruction=by_instruction)

    assert found == strategies.crc32c(BYTES[start : start + 500])


@given(
    length=st.integers(0, 5000),
    shares=st.lists(st.floats(0, 1), max_size=4),
    by_instruction=st.booleans(),
)
def test_crc32c_in_pieces_is_the_whole_ones(length, shares, by_instruction):
    data = BYTES[:length]
    cuts = sorted(int(share * length) for share in shares)

    found = crc32c_in_pieces(data, cuts, by_instruction=by_instruction and crc.HAS_CPU_CRC)

    assert found == crc.crc32c(data)


@given(
    length=st.integers(0, 5000),
    shares=st.lists(st.floats(0, 1), max_size=4),
)
def test_crc32_in_pieces_is_zlibs(length, shares):
    data = BYTES[:length]
    cuts = sorted(int(share * length) for share in shares)

    found = crc32_in_pieces(data, cuts)

    assert found == zlib.crc32(data)


def test_crc32_of_every_length_up_to_1200_is_zlibs():
    expected = [zlib.crc32(BYTES[:length]) for length in range(1201)]

    found = [crc32_in_pieces(BYTES[:length], []) for length in range(1201)]

    assert found == expected


def test_crc32_of_the_known_vector():
    assert crc32_in_pieces(b"123456789", []) == 0xCBF43926


@pytest.mark.parametrize(
    ("triple", "features", "crc_feature", "multiplies"),
    [
        ("x86_64-unknown-linux-gnu", {"sse4.2": True, "pclmul": True}, "sse4.2", True),
        ("x86_64-unknown-linux-gnu", {"sse4.2": True, "pclmul": False}, "sse4.2", False),
        ("x86_64-apple-darwin", {"sse4.2": False, "crc": True}, None, False),
        ("x86_64-apple-darwin", {}, None, False),
        ("aarch64-unknown-linux-gnu", {"crc": True, "sse4.2": True}, "crc", False),
        ("arm64-apple-darwin", {"crc": True, "pclmul": True}, "crc", False),
        ("aarch64-unknown-linux-gnu", {"neon": True}, None, False),
        ("riscv64-unknown-linux-gnu", {"crc": True, "sse4.2": True}, None, False),
    ],
)
def test_instructions_are_taken_where_the_architecture_and_the_cpu_have_them(
    monkeypatch, triple, features, crc_feature, multiplies
):
    monkeypatch.setattr(native.llvm, "get_process_triple", lambda: triple)
    monkeypatch.setattr(native.llvm, "get_host_cpu_features", lambda: features)

    assert native.cpu_crc_feature() == crc_feature
    assert native.has_cpu_multiplication() is multiplies


@pytest.mark.parametrize(
    ("asked", "crc_feature", "multiplies"),
    [
        ("", None, False),
        ("+crc32,+pclmul", "sse4.2", True),
        ("+sse4.2,-pclmul", None, False),  # LLVM emits no CRC instruction for this name alone
    ],
)
def test_code_for_another_cpu_takes_the_instructions_that_are_asked_for(
    monkeypatch, asked, crc_feature, multiplies
):
    monkeypatch.setattr(native.llvm, "get_process_triple", lambda: "x86_64-unknown-linux-gnu")
    monkeypatch.setattr(native.config, "CPU_FEATURES", asked)

    assert native.cpu_crc_feature() == crc_feature
    assert native.has_cpu_multiplication() is multiplies
