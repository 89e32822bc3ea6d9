"""A CUDA program without a compiler or a package: vector addition through the driver API, `vector_add.py [COUNT]`."""

import ctypes
import struct
import sys

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry vector_add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 count)
{
    .reg .pred %out;
    .reg .b32 %i, %block, %size, %lane, %count;
    .reg .b64 %a, %b, %c, %offset;
    .reg .f32 %x, %y, %z;
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %lane, %tid.x;
    mad.lo.u32 %i, %block, %size, %lane;
    ld.param.u32 %count, [count];
    setp.ge.u32 %out, %i, %count;
    @%out ret;
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    ld.param.u64 %c, [c];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %a, %a, %offset;
    add.u64 %b, %b, %offset;
    add.u64 %c, %c, %offset;
    ld.global.f32 %x, [%a];
    ld.global.f32 %y, [%b];
    add.f32 %z, %x, %y;
    st.global.f32 [%c], %z;
    ret;
}
"""

THREADS = 256


def call(cuda, name, *arguments):
    """Calls the driver."""
    code = getattr(cuda, name)(*arguments)
    assert code == 0, f"{name} answers {code}"


def answer(cuda, name, *arguments):
    """Calls the driver, and answers what it puts into the first argument."""
    found = ctypes.c_uint64()
    call(cuda, name, ctypes.byref(found), *arguments)
    return ctypes.c_uint64(found.value)


def add(count):
    """The sums of 0, 1, 2, ... and 1, as the device computes them."""
    cuda = ctypes.CDLL("libcuda.so.1")
    call(cuda, "cuInit", 0)
    call(cuda, "cuCtxSetCurrent", answer(cuda, "cuDevicePrimaryCtxRetain", 0))
    kernel = answer(cuda, "cuModuleGetFunction", answer(cuda, "cuModuleLoadData", PTX), b"vector_add")
    size = ctypes.c_size_t(4 * count)
    buffers = [answer(cuda, "cuMemAlloc_v2", size) for _ in range(3)]
    for buffer, values in zip(buffers, ([float(i) for i in range(count)], [1.0] * count)):
        call(cuda, "cuMemcpyHtoD_v2", buffer, struct.pack(f"<{count}f", *values), size)
    held = [*buffers, ctypes.c_uint32(count)]
    arguments = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in held))
    shape = [ctypes.c_uint(number) for number in ((count + THREADS - 1) // THREADS, 1, 1, THREADS, 1, 1, 0)]
    call(cuda, "cuLaunchKernel", kernel, *shape, None, arguments, None)
    result = (ctypes.c_float * count)()
    call(cuda, "cuMemcpyDtoH_v2", result, buffers[2], size)
    return list(result)


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    sums = add(wanted)
    wrong = sum(found != i + 1 for i, found in enumerate(sums))
    print(f"{wanted} elements, {wrong} wrong")
    sys.exit(1 if wrong else 0)
