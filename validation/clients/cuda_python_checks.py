"""cuda-python: NVIDIA's own bindings of the driver, the runtime and the run-time compiler."""

import ctypes
import importlib.metadata

import numpy
from checks import Checks, integers, random, same
from cuda.bindings import driver, nvrtc, runtime

check = Checks("cuda-python")

# From 12.9 on the bindings carry NVIDIA's runtime.
STATIC = tuple(int(part) for part in importlib.metadata.version("cuda-python").split(".")[:2]) >= (12, 9)
lacks_runtime = check.lacks("the bindings carry a static CUDA runtime without symbols, which cannot be hooked", STATIC)

SOURCE = b"""
__constant__ float bias[4];
extern "C" __global__ void saxpy(float a, const float* x, float* y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void biased(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + bias[i & 3];
}
template <typename T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }
"""


def ok(answer):
    """What a call answered, without its error code, which must be success."""
    code, *values = answer
    if code.value:
        raise RuntimeError(f"{type(code).__name__}.{code.name}")
    return values[0] if len(values) == 1 else values


def context():
    """The current device, its primary context made current."""
    ok(driver.cuInit(0))
    device = ok(driver.cuDeviceGet(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(device))))
    return device


def compiled(kind, names=()):
    """The source as machine code or as PTX, and the mangled names of instances."""
    program = ok(nvrtc.nvrtcCreateProgram(SOURCE, b"saxpy.cu", 0, [], []))
    for name in names:
        ok(nvrtc.nvrtcAddNameExpression(program, name))
    target = b"--gpu-architecture=" + (b"sm_90" if kind == "cubin" else b"compute_90")
    ok(nvrtc.nvrtcCompileProgram(program, 2, [target, b"--fmad=false"]))
    size, read = {
        "cubin": (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN),
        "ptx": (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX),
    }[kind]
    image = b" " * ok(size(program))
    ok(read(program, image))
    lowered = [ok(nvrtc.nvrtcGetLoweredName(program, name)) for name in names]
    ok(nvrtc.nvrtcDestroyProgram(program))
    return image, lowered


def to_device(array):
    """A copy of an array in memory of the driver."""
    address = ok(driver.cuMemAlloc(array.nbytes))
    ok(driver.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))
    return address


def from_device(address, like):
    """What device memory holds, as an array like another."""
    array = numpy.empty_like(like)
    ok(driver.cuMemcpyDtoH(array.ctypes.data, address, array.nbytes))
    return array


def launch(function, count, values, kinds, stream=0):
    """Launches 128 threads a block and waits."""
    grid = (count + 127) // 128
    ok(driver.cuLaunchKernel(function, grid, 1, 1, 128, 1, 1, 0, stream, (values, kinds), 0))
    ok(driver.cuCtxSynchronize())


def saxpy_with(kind):
    """Compiles, loads, launches and compares."""
    context()
    image, _ = compiled(kind)
    module = ok(driver.cuModuleLoadData(image))
    function = ok(driver.cuModuleGetFunction(module, b"saxpy"))
    x, y = random(3000), random(3000, seed=2)
    places = to_device(x), to_device(y)
    kinds = (ctypes.c_float, None, None, ctypes.c_size_t)
    launch(function, 3000, (2.0, *places, 3000), kinds)
    same(from_device(places[1], y), numpy.float32(2) * x + y)
    for place in places:
        ok(driver.cuMemFree(place))
    ok(driver.cuModuleUnload(module))


@check
def device_properties():
    device = context()
    kind = driver.CUdevice_attribute
    major = ok(driver.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    processors = ok(driver.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device))
    same([major, processors], [9, 132])
    assert b"H200" in ok(driver.cuDeviceGetName(100, device))
    free, total = ok(driver.cuMemGetInfo())
    assert 0 < free <= total == ok(driver.cuDeviceTotalMem(device))


@check
def compile_to_machine_code():
    saxpy_with("cubin")


@check
def compile_to_ptx():
    saxpy_with("ptx")


@check
def templates_and_constants():
    context()
    image, names = compiled("cubin", [b"twice<int>", b"twice<double>"])
    library = ok(driver.cuLibraryLoadData(image, [], [], 0, [], [], 0))
    x = integers(1000, 32)
    place = to_device(x)
    kernel = ok(driver.cuLibraryGetKernel(library, names[0]))
    ok(driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, ((place,), (None,)), 0))
    same(from_device(place, x), 2 * x)
    address, size = ok(driver.cuLibraryGetGlobal(library, b"bias"))
    assert size == 16, size
    bias = numpy.array([1, 10, 100, 1000], numpy.float32)
    ok(driver.cuMemcpyHtoD(address, bias.ctypes.data, size))
    y = random(100)
    places = to_device(y), to_device(y)
    function = ok(driver.cuKernelGetFunction(ok(driver.cuLibraryGetKernel(library, b"biased"))))
    launch(function, 100, (*places, 100), (None, None, ctypes.c_int))
    same(from_device(places[1], y), y + numpy.tile(bias, 25))


@lacks_runtime
def runtime_memory():
    properties = ok(runtime.cudaGetDeviceProperties(0))
    same([properties.major, properties.multiProcessorCount, properties.warpSize], [9, 132, 32])
    assert b"H200" in properties.name, properties.name
    x = random(64, 40)
    pitched, pitch = ok(runtime.cudaMallocPitch(40 * 4, 64))
    kind = runtime.cudaMemcpyKind
    ok(runtime.cudaMemcpy2D(pitched, pitch, x.ctypes.data, 160, 160, 64, kind.cudaMemcpyHostToDevice))
    back = numpy.empty_like(x)
    ok(runtime.cudaMemcpy2D(back.ctypes.data, 160, pitched, pitch, 160, 64, kind.cudaMemcpyDeviceToHost))
    same(back, x)
    ok(runtime.cudaMemset2D(pitched, pitch, 0, 160, 32))
    ok(runtime.cudaMemcpy2D(back.ctypes.data, 160, pitched, pitch, 160, 64, kind.cudaMemcpyDeviceToHost))
    x[:32] = 0
    same(back, x)
    ok(runtime.cudaFree(pitched))
    stream = ok(runtime.cudaStreamCreate())
    pooled = ok(runtime.cudaMallocAsync(x.nbytes, stream))
    ok(runtime.cudaMemcpyAsync(pooled, x.ctypes.data, x.nbytes, kind.cudaMemcpyHostToDevice, stream))
    ok(runtime.cudaMemcpyAsync(back.ctypes.data, pooled, x.nbytes, kind.cudaMemcpyDeviceToHost, stream))
    ok(runtime.cudaFreeAsync(pooled, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    same(back, x)


@check
def streams_events_and_graphs():
    context()
    image, _ = compiled("cubin")
    module = ok(driver.cuModuleLoadData(image))
    function = ok(driver.cuModuleGetFunction(module, b"saxpy"))
    x, y = integers(100, 512, kind=numpy.float32), integers(100, 512, seed=2, kind=numpy.float32)
    places = to_device(x), to_device(y)
    stream = ok(driver.cuStreamCreate(0))
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    arguments = (1.0, *places, 512), (ctypes.c_float, None, None, ctypes.c_size_t)
    for _ in range(3):
        ok(driver.cuLaunchKernel(function, 4, 1, 1, 128, 1, 1, 0, stream, arguments, 0))
    graph = ok(driver.cuStreamEndCapture(stream))
    instance = ok(driver.cuGraphInstantiate(graph, 0))
    begin, end = ok(driver.cuEventCreate(0)), ok(driver.cuEventCreate(0))
    ok(driver.cuEventRecord(begin, stream))
    for _ in range(2):
        ok(driver.cuGraphLaunch(instance, stream))
    ok(driver.cuEventRecord(end, stream))
    ok(driver.cuStreamSynchronize(stream))
    same(from_device(places[1], y), y + 6 * x)
    assert ok(driver.cuEventElapsedTime(begin, end)) >= 0


@check
def memory_mapped_by_the_program():
    device = context()
    kind = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    assert ok(driver.cuDeviceGetAttribute(kind, device)) == 1
    wanted = driver.CUmemAllocationProp()
    wanted.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    wanted.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    least = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    size = ok(driver.cuMemGetAllocationGranularity(wanted, least))
    address = ok(driver.cuMemAddressReserve(2 * size, 0, 0, 0))
    access = driver.CUmemAccessDesc()
    access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    for place in (int(address), int(address) + size):
        held = ok(driver.cuMemCreate(size, wanted, 0))
        ok(driver.cuMemMap(place, size, 0, held, 0))
        ok(driver.cuMemRelease(held))
    ok(driver.cuMemSetAccess(address, 2 * size, [access], 1))
    x, across = random(1000), int(address) + size - 2000
    ok(driver.cuMemcpyHtoD(across, x.ctypes.data, x.nbytes))
    same(from_device(across, x), x)
    ok(driver.cuMemUnmap(address, 2 * size))
    ok(driver.cuMemAddressFree(address, 2 * size))


@check
def errors_have_names():
    code, _ = driver.cuModuleLoadData(b"not an image\0")
    assert code.name in ("CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_INVALID_PTX"), code
    code, _ = driver.cuMemAlloc(1 << 60)
    same([code.name, ok(driver.cuGetErrorName(code)).decode()], ["CUDA_ERROR_OUT_OF_MEMORY"] * 2)
    program = ok(nvrtc.nvrtcCreateProgram(b"__global__ void broken( {}", b"broken.cu", 0, [], []))
    (code,) = nvrtc.nvrtcCompileProgram(program, 0, [])
    assert code.name == "NVRTC_ERROR_COMPILATION", code
    log = b" " * ok(nvrtc.nvrtcGetProgramLogSize(program))
    ok(nvrtc.nvrtcGetProgramLog(program, log))
    assert b"broken.cu" in log, log


check.run()
