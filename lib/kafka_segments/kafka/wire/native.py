"""Building blocks of the compiled kernels: unaligned big-endian loads and the CPU's CRC-32C.

Python cannot tell numba to load eight bytes from any address or to use the CRC instruction. LLVM
can do both, and the intrinsics here emit its code. They check no bounds: their callers do.

The loads take a uint8 array or the address of its first byte (``address_of``). Where a function
gets an array numba may count references to it at each call, which small batches pay for.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic, overload

from kafka_segments.kafka.wire import native_in_python as in_python

_CRC_STEPS = {
    # CPU feature: (intrinsic for 8 bytes, bits of its accumulator,
    #               intrinsic for 1 byte, bits of its operand)
    "sse4.2": ("llvm.x86.sse42.crc32.64.64", 64, "llvm.x86.sse42.crc32.32.8", 8),
    "crc": ("llvm.aarch64.crc32cx", 32, "llvm.aarch64.crc32cb", 32),
}
_ASKED_AS = {"sse4.2": "crc32"}  # LLVM has a name of its own for the instruction
_VECTOR = ir.VectorType(ir.IntType(64), 2)


def cpu_crc_feature() -> str | None:
    """Return the CPU feature that has a CRC-32C instruction; None: code is made for none."""
    architecture = llvm.get_process_triple().partition("-")[0]
    feature = {"x86_64": "sse4.2", "aarch64": "crc", "arm64": "crc"}.get(architecture)
    return feature if feature is not None and _has(feature) else None


def has_cpu_multiplication() -> bool:
    """Tell whether code is made for a CPU with x86's carry-less multiplication."""
    return llvm.get_process_triple().startswith("x86_64") and _has("pclmul")


def _has(feature: str) -> bool:
    """Tell whether code is made for a CPU feature: one that is asked for, else one of the host.

    What an image holds compiled fits another CPU if both are told the same of it.
    """
    if config.CPU_FEATURES is None:
        return bool(llvm.get_host_cpu_features().get(feature, False))
    return f"+{_ASKED_AS.get(feature, feature)}" in config.CPU_FEATURES.split(",")


def _or_in_python(body: Callable[..., Any]) -> Callable[[Any], Any]:
    """Take ``body`` in place of an intrinsic where numba compiles nothing."""
    return lambda emitted: body if config.DISABLE_JIT else emitted


def _cpu_multiply(builder: Any, one: Any, other: Any) -> Any:
    """Emit the carry-less product of the low halves of two vectors of two int64."""
    signature = ir.FunctionType(_VECTOR, [_VECTOR, _VECTOR, ir.IntType(8)])
    multiply = cgutils.get_or_insert_function(builder.module, signature, "llvm.x86.pclmulqdq")
    return builder.call(multiply, [one, other, ir.Constant(ir.IntType(8), 0)])


def _element_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Emit the pointer to a byte of a uint8 array, or of what begins at an address."""
    if isinstance(array_type, types.Integer):
        data = builder.inttoptr(array, ir.IntType(8).as_pointer())
    else:
        data = cgutils.create_struct_proxy(array_type)(context, builder, array).data
    return builder.gep(data, [index])


def _load(context: Any, builder: Any, signature: Any, args: Any, bits: int) -> Any:
    pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
    word = ir.IntType(bits)
    return builder.load(builder.bitcast(pointer, word.as_pointer()), align=1)


def _swapped(builder: Any, value: Any) -> Any:
    return builder.bswap(value)


@_or_in_python(in_python.address_of)
@intrinsic  # type: ignore[untyped-decorator]
def address_of(typing_context: Any, array: Any) -> Any:
    """Return where the first byte of a uint8 array lies, which must live meanwhile."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.intp(array), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _load_u8(typing_context: Any, address: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(context, builder, signature, args, 8)

    return types.uint8(address, types.intp), codegen


def byte_at(data: Any, index: Any) -> Any:
    """Return the byte at ``index`` of a uint8 array, or of what begins at an address.

    Of an array numba checks the bounds where it is told to check them.
    """
    return in_python.load_u8(data, index)


@overload(byte_at, jit_options={"forceinline": True})  # type: ignore[untyped-decorator]
def _byte_at(data: Any, index: Any) -> Any:
    def of_address(data: Any, index: Any) -> Any:
        return _load_u8(data, index)

    def of_array(data: Any, index: Any) -> Any:
        return data[index]

    return of_address if isinstance(data, types.Integer) else of_array


@_or_in_python(in_python.store_u8)
@intrinsic  # type: ignore[untyped-decorator]
def store_u8(typing_context: Any, address: Any, index: Any, byte: Any) -> Any:
    """Put a byte ``index`` bytes behind an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _element_pointer(context, builder, signature.args[0], *args[:2]))
        return context.get_dummy_value()

    return types.void(address, types.intp, types.uint8), codegen


@_or_in_python(in_python.load_u64_le)
@intrinsic  # type: ignore[untyped-decorator]
def load_u64_le(typing_context: Any, array: Any, index: Any) -> Any:
    """Return 8 bytes at ``index`` of a uint8 array or address, little-endian."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(context, builder, signature, args, 64)

    return types.uint64(array, types.intp), codegen


@_or_in_python(in_python.load_i64)
@intrinsic  # type: ignore[untyped-decorator]
def load_i64(typing_context: Any, array: Any, index: Any) -> Any:
    """Return a big-endian int64 at ``index`` of a uint8 array or address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _swapped(builder, _load(context, builder, signature, args, 64))

    return types.int64(array, types.intp), codegen


@_or_in_python(in_python.load_i16)
@intrinsic  # type: ignore[untyped-decorator]
def load_i16(typing_context: Any, array: Any, index: Any) -> Any:
    """Return a big-endian int16 at ``index`` of a uint8 array or address, widened to int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _swapped(builder, _load(context, builder, signature, args, 16))
        return builder.sext(word, ir.IntType(64))

    return types.int64(array, types.intp), codegen


@_or_in_python(in_python.load_i32)
@intrinsic  # type: ignore[untyped-decorator]
def load_i32(typing_context: Any, array: Any, index: Any) -> Any:
    """Return a big-endian int32 at ``index`` of a uint8 array or address, widened to int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _swapped(builder, _load(context, builder, signature, args, 32))
        return builder.sext(word, ir.IntType(64))

    return types.int64(array, types.intp), codegen


@_or_in_python(in_python.load_u32)
@intrinsic  # type: ignore[untyped-decorator]
def load_u32(typing_context: Any, array: Any, index: Any) -> Any:
    """Return a big-endian uint32 at ``index`` of a uint8 array or address, widened to uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _swapped(builder, _load(context, builder, signature, args, 32))
        return builder.zext(word, ir.IntType(64))

    return types.uint64(array, types.intp), codegen


@_or_in_python(in_python.crc32c_step_8)
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


@_or_in_python(in_python.crc32c_step_1)
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


@_or_in_python(in_python.carryless_product)
@intrinsic  # type: ignore[untyped-decorator]
def carryless_product(typing_context: Any, one: Any, other: Any) -> Any:
    """Return the low 8 bytes of the carry-less product; 0 on a CPU without the instruction."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if not has_cpu_multiplication():
            return ir.Constant(ir.IntType(64), 0)
        first = ir.Constant(ir.IntType(32), 0)
        factors = [
            builder.insert_element(ir.Constant(_VECTOR, [0, 0]), factor, first) for factor in args
        ]
        return builder.extract_element(_cpu_multiply(builder, *factors), first)

    return types.uint64(types.uint64, types.uint64), codegen
