"""CRC-32 by carry-less multiplication, where the CPU has the instruction.

A 128-bit lane is multiplied by what x to the power of a number of bits is modulo the polynomial,
and takes in the bytes that are so many bits further on: its remainder stays that of all bytes so
far. Of many bytes four lanes take 64 a step, of few one lane takes 16. The bytes that are no
whole lane come first, with zeros in front of them, which change nothing. In the end one lane is
left, whose 16 bytes stand for all that were read; three more multiplications make 8 bytes and then
the 4 of the register of it, the last two by Barrett's reduction.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kafka_segments.kafka.wire.native import (
    VECTOR,
    cpu_multiply,
    element_pointer,
    has_cpu_multiplication,
)

LANE_BYTES = 16
_POLYNOMIAL = 0x104C11DB7
_LANE_BITS = 8 * LANE_BYTES
_LANES = 4
_LEAST_BLOCKS = 16  # of one lane's bytes, from which on four lanes are quicker
_WORD = ir.IntType(64)
_LANE = ir.IntType(_LANE_BITS)
_QUARTERS = ir.VectorType(ir.IntType(32), 4)
_LOW_32 = ir.Constant(VECTOR, [0xFFFFFFFF, 0])


def _factor(power: int) -> int:
    """Return x**power modulo the polynomial, bit-reversed, as the multiplication wants it."""
    remainder = 1
    for _ in range(power):
        remainder <<= 1
        if remainder >> 32:
            remainder ^= _POLYNOMIAL
    return int(f"{remainder:032b}"[::-1], 2) << 1


def _reflected(polynomial: int) -> int:
    """Return a polynomial of degree 32 with its bits in the other order."""
    return int(f"{polynomial:033b}"[::-1], 2)


def _quotient() -> int:
    """Return the whole part of x**64 divided by the polynomial."""
    quotient, remainder = 0, 1 << 64
    for power in range(32, -1, -1):
        if remainder >> (power + 32) & 1:
            quotient |= 1 << power
            remainder ^= _POLYNOMIAL << power
    return quotient


def _factors(bits: int) -> Any:
    """Return the factors that move the low and the high half of a lane over ``bits``."""
    return ir.Constant(VECTOR, [_factor(bits + 32), _factor(bits - 32)])


class _Folder:
    """Emits the steps into one function."""

    def __init__(self, builder: Any, data: Any) -> None:
        self._builder = builder
        self._data = data

    def load(self, index: Any, as_type: Any = VECTOR) -> Any:
        """Load the 16 bytes at ``index``."""
        pointer = self._builder.gep(self._data, [index])
        return self._builder.load(self._builder.bitcast(pointer, as_type.as_pointer()), align=1)

    def fold(self, lane: Any, factors: Any, other: Any) -> Any:
        """Move a lane by multiplication and add another to it."""
        builder = self._builder
        low, high = (cpu_multiply(builder, lane, factors, halves) for halves in (0x00, 0x11))
        return builder.xor(builder.xor(low, high), other)

    def multiply(self, lane: Any, factor: int) -> Any:
        """Multiply the low half of a lane by a number."""
        return cpu_multiply(self._builder, lane, ir.Constant(VECTOR, [factor, 0]), 0)

    def without(self, lane: Any, quarters: int) -> Any:
        """Return a lane moved down by so many times 4 bytes."""
        builder = self._builder
        places = ir.Constant(ir.VectorType(ir.IntType(32), 4), [n + quarters for n in range(4)])
        moved = builder.shuffle_vector(
            builder.bitcast(lane, _QUARTERS), ir.Constant(_QUARTERS, [0] * 4), places
        )
        return builder.bitcast(moved, VECTOR)

    def register_of(self, lane: Any) -> Any:
        """Return the register after the bytes for which a lane stands."""
        builder = self._builder
        lane = builder.xor(self.multiply(lane, _factor(96)), self.without(lane, 2))
        low = builder.and_(lane, _LOW_32)
        lane = builder.xor(self.multiply(low, _factor(64)), self.without(lane, 1))
        low = builder.and_(lane, _LOW_32)
        whole = builder.and_(self.multiply(low, _reflected(_quotient())), _LOW_32)
        lane = builder.xor(self.multiply(whole, _reflected(_POLYNOMIAL)), lane)
        word = builder.extract_element(lane, ir.Constant(ir.IntType(32), 0))
        return builder.lshr(word, ir.Constant(_WORD, 32))

    def begin(self, start: Any, head_bytes: Any, register: Any) -> tuple[Any, Any]:
        """Return the first lane, and what of the register belongs to the bytes after it.

        The lane is the ``head_bytes`` bytes at ``start``, 1 to 16, with the register in the first
        four of them and with zeros in front.
        """
        builder = self._builder
        bits = builder.shl(head_bytes, ir.Constant(_WORD, 3))
        zeros = builder.sub(ir.Constant(_WORD, _LANE_BITS), bits)
        taken_in = builder.xor(self.load(start, _LANE), builder.zext(register, _LANE))
        lane = builder.bitcast(builder.shl(taken_in, builder.zext(zeros, _LANE)), VECTOR)
        register_bits = ir.Constant(_WORD, 32)
        is_short = builder.icmp_unsigned("<", bits, register_bits)
        left = builder.lshr(register, builder.select(is_short, bits, register_bits))
        rest = builder.insert_element(
            ir.Constant(VECTOR, [0, 0]), left, ir.Constant(ir.IntType(32), 0)
        )
        return lane, rest

    def fold_one_by_one(self, lane: Any, rest: Any, start: Any, end: Any) -> None:
        """Fold the bytes from ``start`` to ``end`` into the lane; the first takes ``rest`` too."""
        builder = self._builder
        factors = _factors(_LANE_BITS)
        step = ir.Constant(start.type, LANE_BYTES)
        with builder.if_then(builder.icmp_signed("<", start, end)):
            first = builder.xor(self.load(start), rest)
            builder.store(self.fold(builder.load(lane), factors, first), lane)
            with cgutils.for_range_slice(
                builder, builder.add(start, step), end, step, inc=True
            ) as (index, _):
                builder.store(self.fold(builder.load(lane), factors, self.load(index)), lane)

    def fold_by_four(self, lane: Any, start: Any, end: Any) -> None:
        """Fold the bytes from ``start`` to ``end``, a multiple of 64, into the lane."""
        builder = self._builder
        step = ir.Constant(start.type, _LANES * LANE_BYTES)
        with builder.if_then(builder.icmp_signed("<", start, end)):
            lanes = [cgutils.alloca_once(builder, VECTOR) for _ in range(_LANES - 1)] + [lane]
            for other in lanes[:-1]:
                builder.store(ir.Constant(VECTOR, [0, 0]), other)
            factors = _factors(_LANES * _LANE_BITS)
            with cgutils.for_range_slice(builder, start, end, step, inc=True) as (index, _):
                for number, one in enumerate(lanes):
                    at = builder.add(index, ir.Constant(index.type, number * LANE_BYTES))
                    builder.store(self.fold(builder.load(one), factors, self.load(at)), one)
            joined = builder.load(lanes[0])
            for other in lanes[1:]:
                joined = self.fold(joined, _factors(_LANE_BITS), builder.load(other))
            builder.store(joined, lane)


@intrinsic  # type: ignore[untyped-decorator]
def crc32_by_multiplication(typing_context: Any, array: Any, start: Any, end: Any, crc: Any) -> Any:
    """Return the CRC-32 register ``crc`` after ``array[start:end]``, of 16 bytes or more.

    Without the instruction it is 0.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not has_cpu_multiplication():
            return ir.Constant(_WORD, 0)
        _, start, end, register = args
        first = ir.Constant(_WORD, 0)
        folder = _Folder(
            builder, element_pointer(context, builder, signature.args[0], args[0], first)
        )
        one, lane_bytes = ir.Constant(_WORD, 1), ir.Constant(_WORD, LANE_BYTES)
        before_last = builder.udiv(builder.sub(builder.sub(end, start), one), lane_bytes)
        head_bytes = builder.sub(builder.sub(end, start), builder.mul(before_last, lane_bytes))
        first_lane, rest = folder.begin(start, head_bytes, register)
        lane = cgutils.alloca_once_value(builder, first_lane)

        start = builder.add(start, head_bytes)
        is_long = builder.icmp_unsigned(">=", before_last, ir.Constant(_WORD, _LEAST_BLOCKS))
        odd = builder.urem(builder.sub(before_last, one), ir.Constant(_WORD, _LANES))
        singles = builder.mul(builder.add(odd, one), lane_bytes)
        by_four = builder.select(is_long, builder.add(start, singles), end)
        folder.fold_one_by_one(lane, rest, start, by_four)
        folder.fold_by_four(lane, by_four, end)
        return folder.register_of(builder.load(lane))

    return types.uint64(array, types.intp, types.intp, types.uint64), codegen
