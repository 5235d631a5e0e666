"""Building blocks of the compiled kernels: unaligned big-endian loads and the CPU's CRC-32C.

Python cannot tell numba to load eight bytes from any address or to use the CRC instruction. LLVM
can do both, and the intrinsics here emit its code. They check no bounds: their callers do.
"""

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_CRC_STEPS = {
    # CPU feature: (intrinsic for 8 bytes, bits of its accumulator,
    #               intrinsic for 1 byte, bits of its operand)
    "sse4.2": ("llvm.x86.sse42.crc32.64.64", 64, "llvm.x86.sse42.crc32.32.8", 8),
    "crc": ("llvm.aarch64.crc32cx", 32, "llvm.aarch64.crc32cb", 32),
}


def cpu_crc_feature() -> str | None:
    """Return the CPU feature that has a CRC-32C instruction; None if the host has none."""
    features = llvm.get_host_cpu_features()
    architecture = llvm.get_process_triple().partition("-")[0]
    feature = {"x86_64": "sse4.2", "aarch64": "crc", "arm64": "crc"}.get(architecture)
    return feature if feature is not None and features.get(feature, False) else None


def _element_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = cgutils.create_struct_proxy(array_type)(context, builder, array).data
    return builder.gep(data, [index])


def _load(context: Any, builder: Any, signature: Any, args: Any, bits: int) -> Any:
    pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
    word = ir.IntType(bits)
    return builder.load(builder.bitcast(pointer, word.as_pointer()), align=1)


def _swapped(builder: Any, value: Any) -> Any:
    return builder.bswap(value)


@intrinsic  # type: ignore[untyped-decorator]
def load_u64_le(typing_context: Any, array: Any, index: Any) -> Any:
    """Return 8 bytes at ``index`` of a uint8 array, little-endian."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(context, builder, signature, args, 64)

    return types.uint64(array, types.intp), codegen


@intrinsic  # type: ignore[untyped-decorator]
def load_i64(typing_context: Any, array: Any, index: Any) -> Any:
    """Return a big-endian int64 at ``index`` of a uint8 array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _swapped(builder, _load(context, builder, signature, args, 64))

    return types.int64(array, types.intp), codegen


@intrinsic  # type: ignore[untyped-decorator]
def load_i16(typing_context: Any, array: Any, index: Any) -> Any:
    """Return a big-endian int16 at ``index`` of a uint8 array, widened to int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _swapped(builder, _load(context, builder, signature, args, 16))
        return builder.sext(word, ir.IntType(64))

    return types.int64(array, types.intp), codegen


@intrinsic  # type: ignore[untyped-decorator]
def load_i32(typing_context: Any, array: Any, index: Any) -> Any:
    """Return a big-endian int32 at ``index`` of a uint8 array, widened to int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _swapped(builder, _load(context, builder, signature, args, 32))
        return builder.sext(word, ir.IntType(64))

    return types.int64(array, types.intp), codegen


@intrinsic  # type: ignore[untyped-decorator]
def load_u32(typing_context: Any, array: Any, index: Any) -> Any:
    """Return a big-endian uint32 at ``index`` of a uint8 array, widened to uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _swapped(builder, _load(context, builder, signature, args, 32))
        return builder.zext(word, ir.IntType(64))

    return types.uint64(array, types.intp), codegen


@intrinsic  # type: ignore[untyped-decorator]
def crc32c_step_8(typing_context: Any, crc: Any, word: Any) -> Any:
    """Return the CRC-32C after 8 more bytes (little-endian); ``crc`` itself on a CPU without it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        feature = cpu_crc_feature()
        if feature is None:
            return args[0]
        name, bits, _, _ = _CRC_STEPS[feature]
        word_64, accumulator = ir.IntType(64), ir.IntType(bits)
        step = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(accumulator, [accumulator, word_64]), name
        )
        crc_in = args[0] if bits == 64 else builder.trunc(args[0], accumulator)
        crc_out = builder.call(step, [crc_in, args[1]])
        return crc_out if bits == 64 else builder.zext(crc_out, word_64)

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def crc32c_step_1(typing_context: Any, crc: Any, byte: Any) -> Any:
    """Return the CRC-32C after one more byte; ``crc`` itself on a CPU without the instruction."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        feature = cpu_crc_feature()
        if feature is None:
            return args[0]
        _, _, name, bits = _CRC_STEPS[feature]
        word_32, operand = ir.IntType(32), ir.IntType(bits)
        step = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(word_32, [word_32, operand]), name
        )
        byte = args[1] if bits == 8 else builder.zext(args[1], operand)
        crc_out = builder.call(step, [builder.trunc(args[0], word_32), byte])
        return builder.zext(crc_out, ir.IntType(64))

    return types.uint64(types.uint64, types.uint8), codegen
