"""CRC-32 by carry-less multiplication: 64 bytes a step where the CPU has the instruction.

Four 128-bit accumulators, each the next 16 bytes of a 64-byte block, are multiplied by what x to
the power of a block's bits is modulo the polynomial, and take in the next block: their remainder
stays that of all bytes so far. In the end they are folded into one, whose 16 bytes stand for all
that were read; the tables go on from there.
"""

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BLOCK_BYTES = 64
_POLYNOMIAL = 0x104C11DB7
_LANE_BITS = 128
_LANES = 4
_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, 2)


def has_cpu_multiplication() -> bool:
    """Tell whether the host has x86's carry-less multiplication."""
    is_x86 = llvm.get_process_triple().startswith("x86_64")
    return is_x86 and bool(llvm.get_host_cpu_features().get("pclmul", False))


def _factor(power: int) -> int:
    """Return x**power modulo the polynomial, bit-reversed, as the multiplication wants it."""
    remainder = 1
    for _ in range(power):
        remainder <<= 1
        if remainder >> 32:
            remainder ^= _POLYNOMIAL
    return int(f"{remainder:032b}"[::-1], 2) << 1


def _factors(bits: int) -> Any:
    """Return the factors that move the low and the high half of a lane over ``bits``."""
    return ir.Constant(_VECTOR, [_factor(bits + 32), _factor(bits - 32)])


class _Folder:
    """Emits the steps into one function."""

    def __init__(self, builder: Any, data: Any) -> None:
        self._builder = builder
        self._data = data
        signature = ir.FunctionType(_VECTOR, [_VECTOR, _VECTOR, ir.IntType(8)])
        self._multiply = cgutils.get_or_insert_function(
            builder.module, signature, "llvm.x86.pclmulqdq"
        )

    def load(self, index: Any, lane: int) -> Any:
        """Load the 16 bytes of a lane from the block at ``index``."""
        builder = self._builder
        at = builder.add(index, ir.Constant(index.type, lane * _LANE_BITS // 8))
        pointer = builder.bitcast(builder.gep(self._data, [at]), _VECTOR.as_pointer())
        return builder.load(pointer, align=1)

    def fold(self, lane: Any, factors: Any, other: Any) -> Any:
        """Move a lane by multiplication and add another to it."""
        builder = self._builder
        low, high = (
            builder.call(self._multiply, [lane, factors, ir.Constant(ir.IntType(8), half)])
            for half in (0x00, 0x11)
        )
        return builder.xor(builder.xor(low, high), other)


@intrinsic  # type: ignore[untyped-decorator]
def fold_blocks(typing_context: Any, array: Any, start: Any, end: Any, crc: Any) -> Any:
    """Fold ``array[start:end]``, one or more whole blocks, into 16 bytes, as two uint64.

    ``crc`` is the register so far. Without the instruction the result is zeros.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not has_cpu_multiplication():
            return cgutils.pack_array(builder, [ir.Constant(_WORD, 0)] * 2)
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        folder = _Folder(builder, data)
        lanes = [cgutils.alloca_once(builder, _VECTOR) for _ in range(_LANES)]
        for number, lane in enumerate(lanes):
            builder.store(folder.load(args[1], number), lane)
        register = ir.Constant(_VECTOR, [0, 0])
        register = builder.insert_element(register, args[3], ir.Constant(ir.IntType(32), 0))
        builder.store(builder.xor(builder.load(lanes[0]), register), lanes[0])
        step = ir.Constant(args[1].type, BLOCK_BYTES)
        by_block = _factors(_LANES * _LANE_BITS)
        with cgutils.for_range_slice(
            builder, builder.add(args[1], step), args[2], step, inc=True
        ) as (index, _):
            for number, lane in enumerate(lanes):
                folded = folder.fold(builder.load(lane), by_block, folder.load(index, number))
                builder.store(folded, lane)
        joined = builder.load(lanes[0])
        for lane in lanes[1:]:
            joined = folder.fold(joined, _factors(_LANE_BITS), builder.load(lane))
        halves = [
            builder.extract_element(joined, ir.Constant(ir.IntType(32), half)) for half in (0, 1)
        ]
        return cgutils.pack_array(builder, halves)

    pair = types.UniTuple(types.uint64, 2)
    return pair(array, types.intp, types.intp, types.uint64), codegen
