// A multicast object over several GPUs: what multimem.ld_reduce, multimem.st and multimem.red do by it, and what is
// refused.
//
// Usage: multicast values GPUS | refusals | processes | fault load|plain|unbound|copy
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

static const size_t bytes = 2 << 20;
static const int count = 1024;        // elements of each kind
static const size_t room = 32 << 10;  // bytes between kinds

static void must(int error, const char* call) {
    if (error == 0) return;
    printf("%s: %d\n", call, error);
    fflush(stdout);
    _exit(3);
}
#define MUST(call) must((int)(call), #call)

// Kinds of elements, a room each.
enum { F32, F32X4, HALF, HALF_WIDE, BRAIN, BRAIN_WIDE, U32, U32_MIN, S32_MAX, U64, B64_XOR, F64, HALF8, KINDS };

#define LOAD1(form, class, type, at) \
    { type value; asm volatile("multimem.ld_reduce.relaxed.sys.global." form " %0, [%1];" : "=" class(value) : "l"(from + at) : "memory"); *(type*)(to + at) = value; }

// What the members have together, to memory of this GPU.
__global__ void load(const char* from, char* to) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    size_t word = 4 * index, pair = 8 * index;
    LOAD1("add.f32", "f", float, F32 * room + word);
    LOAD1("add.f16x2", "r", unsigned, HALF * room + word);
    LOAD1("add.acc::f32.f16x2", "r", unsigned, HALF_WIDE * room + word);
    LOAD1("add.bf16x2", "r", unsigned, BRAIN * room + word);
    LOAD1("add.acc::f32.bf16x2", "r", unsigned, BRAIN_WIDE * room + word);
    LOAD1("add.u32", "r", unsigned, U32 * room + word);
    LOAD1("min.u32", "r", unsigned, U32_MIN * room + word);
    LOAD1("max.s32", "r", int, S32_MAX * room + word);
    LOAD1("add.u64", "l", unsigned long long, U64 * room + pair);
    LOAD1("xor.b64", "l", unsigned long long, B64_XOR * room + pair);
    LOAD1("add.f64", "d", double, F64 * room + pair);
    if (index < count / 4) {
        size_t at = F32X4 * room + 16 * index;
        float4 v;
        asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
            : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(from + at) : "memory");
        *(float4*)(to + at) = v;
        at = HALF8 * room + 16 * index;
        unsigned short h[8];
        asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v8.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
            : "=h"(h[0]), "=h"(h[1]), "=h"(h[2]), "=h"(h[3]), "=h"(h[4]), "=h"(h[5]), "=h"(h[6]), "=h"(h[7])
            : "l"(from + at) : "memory");
        for (int i = 0; i < 8; i++) ((unsigned short*)(to + at))[i] = h[i];
    }
}

// Every GPU stores its part to all members, in all kinds that have a store.
__global__ void store(char* to, int part, int parts, unsigned* own, int* wrong) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index % parts != part) return;
    float value = index + 0.5f;
    asm volatile("multimem.st.relaxed.sys.global.f32 [%0], %1;" :: "l"(to + F32 * room + 4 * index), "f"(value) : "memory");
    asm volatile("multimem.st.weak.global.f16x2 [%0], %1;" :: "l"(to + HALF * room + 4 * index), "r"(index * 3) : "memory");
    asm volatile("multimem.st.weak.global.bf16x2 [%0], %1;" :: "l"(to + BRAIN * room + 4 * index), "r"(index * 5) : "memory");
    asm volatile("multimem.st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(to + U32 * room + 4 * index), "r"(index * 7) : "memory");
    asm volatile("multimem.st.release.sys.global.u64 [%0], %1;" :: "l"(to + U64 * room + 8 * index), "l"(index * 11ull << 20) : "memory");
    if (index < count / 4)
        asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %1, %1, %2};" :: "l"(to + F32X4 * room + 16 * index), "f"(value), "f"(-value) : "memory");
    // A thread sees on all members what it has stored.
    unsigned sum;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.u32 %0, [%1];" : "=r"(sum) : "l"(to + U32 * room + 4 * index) : "memory");
    if (sum != index * 7u * *own) atomicAdd(wrong, 1);
}

// Every GPU adds its number to all elements of all members.
__global__ void add(char* to, int amount) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned half = __half_as_ushort(__float2half(amount)), brain = __bfloat16_as_ushort(__float2bfloat16(amount));
    half |= half << 16, brain |= brain << 16;
    asm volatile("multimem.red.relaxed.sys.global.add.f32 [%0], %1;" :: "l"(to + F32 * room + 4 * index), "f"((float)amount) : "memory");
    asm volatile("multimem.red.relaxed.sys.global.add.f16x2 [%0], %1;" :: "l"(to + HALF * room + 4 * index), "r"(half) : "memory");
    asm volatile("multimem.red.relaxed.sys.global.add.bf16x2 [%0], %1;" :: "l"(to + BRAIN * room + 4 * index), "r"(brain) : "memory");
    // One word for all threads.
    asm volatile("multimem.red.relaxed.sys.global.add.u32 [%0], %1;" :: "l"(to + U32 * room), "r"(amount) : "memory");
    asm volatile("multimem.red.relaxed.sys.global.add.u64 [%0], %1;" :: "l"(to + U64 * room + 8 * index), "l"((unsigned long long)amount << 33) : "memory");
    if (index < count / 4)
        asm volatile("multimem.red.relaxed.sys.global.add.v4.f32 [%0], {%1, %1, %1, %2};" :: "l"(to + F32X4 * room + 16 * index), "f"((float)amount), "f"(2.0f * amount) : "memory");
}

// `st` and `red` go to everybody, a plain load to nobody.
__global__ void plain_load(const int* from, int* to) { *to = *(volatile const int*)from; }

struct Node {
    int gpus;
    std::vector<CUcontext> contexts;
    std::vector<CUmemGenericAllocationHandle> memory;
    std::vector<CUdeviceptr> own, result;
    CUmemGenericAllocationHandle object;
    CUdeviceptr address;
};

static CUmemAllocationProp properties(int gpu, int shared) {
    CUmemAllocationProp wanted = {};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
    wanted.requestedHandleTypes = shared ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
    return wanted;
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle, int gpu) {
    CUdeviceptr address;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, gpu}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    MUST(cuMemAddressReserve(&address, bytes, 0, 0, 0));
    MUST(cuMemMap(address, bytes, 0, handle, 0));
    MUST(cuMemSetAccess(address, bytes, &access, 1));
    return address;
}

static CUmulticastObjectProp object_of(int gpus, int shared) {
    CUmulticastObjectProp wanted = {};
    wanted.numDevices = gpus;
    wanted.size = bytes;
    wanted.handleTypes = shared ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
    return wanted;
}

// An object over all GPUs, whose memory is bound by handle or by address, in turn.
static Node make(int gpus, int shared) {
    Node node = {gpus};
    for (int gpu = 0; gpu < gpus; gpu++) {
        CUcontext context;
        CUmemGenericAllocationHandle memory;
        CUdeviceptr result;
        CUmemAllocationProp wanted = properties(gpu, shared);
        MUST(cuDevicePrimaryCtxRetain(&context, gpu));
        MUST(cuCtxSetCurrent(context));
        MUST(cuMemCreate(&memory, bytes, &wanted, 0));
        MUST(cuMemAlloc(&result, KINDS * room));
        node.contexts.push_back(context);
        node.memory.push_back(memory);
        node.own.push_back(map(memory, gpu));
        node.result.push_back(result);
    }
    CUmulticastObjectProp wanted = object_of(gpus, shared);
    MUST(cuMulticastCreate(&node.object, &wanted));
    for (int gpu = 0; gpu < gpus; gpu++) MUST(cuMulticastAddDevice(node.object, gpu));
    for (int gpu = 0; gpu < gpus; gpu++) {
        if (gpu % 2) MUST(cuMulticastBindAddr(node.object, 0, node.own[gpu], bytes, 0));
        else MUST(cuMulticastBindMem(node.object, 0, node.memory[gpu], 0, bytes, 0));
    }
    MUST(cuMemAddressReserve(&node.address, bytes, 0, 0, 0));
    MUST(cuMemMap(node.address, bytes, 0, node.object, 0));
    std::vector<CUmemAccessDesc> access;
    for (int gpu = 0; gpu < gpus; gpu++) access.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, gpu}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    MUST(cuMemSetAccess(node.address, bytes, access.data(), gpus));
    return node;
}

template <class Work> static void on_all(Node& node, Work work) {
    for (int gpu = 0; gpu < node.gpus; gpu++) {
        MUST(cuCtxSetCurrent(node.contexts[gpu]));
        work(gpu);
    }
    for (int gpu = 0; gpu < node.gpus; gpu++) {
        MUST(cuCtxSetCurrent(node.contexts[gpu]));
        MUST(cuCtxSynchronize());
    }
}

static std::vector<char> read(CUdeviceptr from) {
    std::vector<char> to(KINDS * room);
    MUST(cuMemcpyDtoH(to.data(), from, to.size()));
    return to;
}

template <class T> static T& at(std::vector<char>& memory, int kind, int index) { return ((T*)(memory.data() + kind * room))[index]; }

// What a GPU has at first. Sums of the floats depend on their order and on where they are rounded.
static void fill(std::vector<char>& memory, int gpu) {
    for (int i = 0; i < count; i++) {
        float large = gpu == 0 ? 1e8f : gpu == 1 ? 3.0f + i : gpu == 2 ? -1e8f : 0.25f * i;
        float small = gpu == 0 ? 2048.0f : 1.0f + i % 7 * 0.125f;
        float brain = gpu == 0 ? 256.0f : 0.75f + i % 5 * 0.0625f;
        at<float>(memory, F32, i) = large;
        at<float>(memory, F32X4, i) = large + i;
        for (int half = 0; half < 2; half++) {
            for (int kind : {HALF, HALF_WIDE, HALF8}) at<__half>(memory, kind, 2 * i + half) = __float2half(small + half);
            for (int kind : {BRAIN, BRAIN_WIDE}) at<__nv_bfloat16>(memory, kind, 2 * i + half) = __float2bfloat16(brain + half);
        }
        at<unsigned>(memory, U32, i) = 0xfffffff0u + gpu * 5 + i;
        at<unsigned>(memory, U32_MIN, i) = (i * 2654435761u) >> gpu;
        at<int>(memory, S32_MAX, i) = (i % 3 == gpu % 3) ? -i : -2 * i - gpu;
        at<unsigned long long>(memory, U64, i) = (0xffffffffull << gpu) + i;
        at<unsigned long long>(memory, B64_XOR, i) = 0x123456789abcdefull * (gpu + 1) * i;
        at<double>(memory, F64, i) = 1.0 / (i + gpu + 1);
    }
}

template <class T, class Op> static int compare(std::vector<std::vector<char>>& all, std::vector<char>& got, int kind, int elements, Op op) {
    int wrong = 0;
    for (int i = 0; i < elements; i++) {
        T sum = at<T>(all[0], kind, i);
        for (size_t gpu = 1; gpu < all.size(); gpu++) sum = op(sum, at<T>(all[gpu], kind, i));
        if (memcmp(&sum, &at<T>(got, kind, i), sizeof sum)) wrong++;
    }
    return wrong;
}

// The same in single precision, rounded once.
template <class T> static int compare_wide(std::vector<std::vector<char>>& all, std::vector<char>& got, int kind, int elements) {
    int wrong = 0;
    for (int i = 0; i < elements; i++) {
        float sum = (float)at<T>(all[0], kind, i);
        for (size_t gpu = 1; gpu < all.size(); gpu++) sum += (float)at<T>(all[gpu], kind, i);
        T rounded = T(sum);
        if (memcmp(&rounded, &at<T>(got, kind, i), sizeof rounded)) wrong++;
    }
    return wrong;
}

static void values(int gpus) {
    Node node = make(gpus, 0);
    std::vector<std::vector<char>> first;
    for (int gpu = 0; gpu < gpus; gpu++) {
        first.emplace_back(KINDS * room);
        fill(first[gpu], gpu);
        MUST(cuMemcpyHtoD(node.own[gpu], first[gpu].data(), first[gpu].size()));
    }
    on_all(node, [&](int gpu) { load<<<count / 128, 128>>>((char*)node.address, (char*)node.result[gpu]); });
    int wrong[KINDS] = {};
    for (int gpu = 0; gpu < gpus; gpu++) {
        std::vector<char> got = read(node.result[gpu]);
        auto plus = [](auto a, auto b) { return a + b; };
        wrong[F32] += compare<float>(first, got, F32, count, plus);
        wrong[F32X4] += compare<float>(first, got, F32X4, count, plus);
        wrong[HALF] += compare<__half>(first, got, HALF, 2 * count, [](__half a, __half b) { return __float2half((float)a + (float)b); });
        wrong[HALF_WIDE] += compare_wide<__half>(first, got, HALF_WIDE, 2 * count);
        wrong[HALF8] += compare_wide<__half>(first, got, HALF8, 2 * count);
        wrong[BRAIN] += compare<__nv_bfloat16>(first, got, BRAIN, 2 * count, [](__nv_bfloat16 a, __nv_bfloat16 b) { return __float2bfloat16((float)a + (float)b); });
        wrong[BRAIN_WIDE] += compare_wide<__nv_bfloat16>(first, got, BRAIN_WIDE, 2 * count);
        wrong[U32] += compare<unsigned>(first, got, U32, count, plus);
        wrong[U32_MIN] += compare<unsigned>(first, got, U32_MIN, count, [](unsigned a, unsigned b) { return a < b ? a : b; });
        wrong[S32_MAX] += compare<int>(first, got, S32_MAX, count, [](int a, int b) { return a > b ? a : b; });
        wrong[U64] += compare<unsigned long long>(first, got, U64, count, plus);
        wrong[B64_XOR] += compare<unsigned long long>(first, got, B64_XOR, count, [](unsigned long long a, unsigned long long b) { return a ^ b; });
        wrong[F64] += compare<double>(first, got, F64, count, plus);
    }
    printf("loaded:");
    for (int kind = 0; kind < KINDS; kind++) printf(" %d", wrong[kind]);
    printf(" wrong\n");

    // Stores of each GPU reach all.
    std::vector<CUdeviceptr> notes(gpus);
    for (int gpu = 0; gpu < gpus; gpu++) {
        MUST(cuCtxSetCurrent(node.contexts[gpu]));
        unsigned words[2] = {(unsigned)gpus, 0};
        MUST(cuMemAlloc(&notes[gpu], sizeof words));
        MUST(cuMemcpyHtoD(notes[gpu], words, sizeof words));
    }
    on_all(node, [&](int gpu) {
        store<<<count / 128, 128>>>((char*)node.address, gpu, gpus, (unsigned*)notes[gpu], (int*)notes[gpu] + 1);
    });
    int unseen = 0, stored = 0;
    for (int gpu = 0; gpu < gpus; gpu++) {
        int words[2];
        MUST(cuMemcpyDtoH(words, notes[gpu], sizeof words));
        unseen += words[1];
        std::vector<char> got = read(node.own[gpu]);
        for (int i = 0; i < count; i++) {
            float value = i + 0.5f;
            stored += at<float>(got, F32, i) != value;
            stored += at<unsigned>(got, HALF, i) != i * 3u;
            stored += at<unsigned>(got, BRAIN, i) != i * 5u;
            stored += at<unsigned>(got, U32, i) != i * 7u;
            stored += at<unsigned long long>(got, U64, i) != i * 11ull << 20;
            stored += at<float>(got, F32X4, i) != (i % 4 == 3 ? -1 : 1) * (i / 4 + 0.5f);
        }
    }
    printf("stored: %d wrong, %d not seen by who stored\n", stored, unseen);

    // Reductions of all GPUs meet on all.
    std::vector<char> zero(KINDS * room);
    for (int gpu = 0; gpu < gpus; gpu++) MUST(cuMemcpyHtoD(node.own[gpu], zero.data(), zero.size()));
    on_all(node, [&](int gpu) { add<<<count / 128, 128>>>((char*)node.address, gpu + 1); });
    int sum = gpus * (gpus + 1) / 2, added = 0;
    for (int gpu = 0; gpu < gpus; gpu++) {
        std::vector<char> got = read(node.own[gpu]);
        added += at<unsigned>(got, U32, 0) != (unsigned)(sum * count);
        for (int i = 0; i < count; i++) {
            added += at<float>(got, F32, i) != sum;
            added += (float)at<__half>(got, HALF, 2 * i) != sum || (float)at<__half>(got, HALF, 2 * i + 1) != sum;
            added += (float)at<__nv_bfloat16>(got, BRAIN, 2 * i) != sum || (float)at<__nv_bfloat16>(got, BRAIN, 2 * i + 1) != sum;
            added += at<unsigned long long>(got, U64, i) != (unsigned long long)sum << 33;
            added += at<float>(got, F32X4, i) != (i % 4 == 3 ? 2 * sum : sum);
        }
    }
    printf("added: %d wrong\n", added);

    // The object and the memory stay for who has them mapped or bound, whatever is released first.
    MUST(cuMemRelease(node.object));
    for (int gpu = 0; gpu < gpus; gpu++) {
        MUST(cuMemUnmap(node.own[gpu], bytes));
        MUST(cuMemRelease(node.memory[gpu]));
    }
    MUST(cuCtxSetCurrent(node.contexts[0]));
    load<<<count / 128, 128>>>((char*)node.address, (char*)node.result[0]);
    std::vector<char> got = read(node.result[0]);
    printf("after the release: %g\n", at<float>(got, F32, 5));
    MUST(cuMemUnmap(node.address, bytes));
    MUST(cuMemAddressFree(node.address, bytes));
    printf("gone: %d\n", cuMulticastUnbind(node.object, 0, 0, bytes) == CUDA_ERROR_INVALID_VALUE);
}

static void refusals() {
    int gpus = 0;
    MUST(cuDeviceGetCount(&gpus));
    for (int gpu = 0; gpu < gpus; gpu++) {
        int supported = -1;
        MUST(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, gpu));
        printf("GPU %d: %d\n", gpu, supported);
    }
    CUcontext context;
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    CUmemGenericAllocationHandle object, memory, other, third;
    CUmulticastObjectProp wanted = object_of(2, 0);
    int made = cuMulticastCreate(&object, &wanted);
    printf("create: %d\n", made);
    if (made) return;
    size_t granularity = 0;
    MUST(cuMulticastGetGranularity(&granularity, &wanted, CU_MULTICAST_GRANULARITY_RECOMMENDED));
    printf("granularity: %zu\n", granularity);
    CUmulticastObjectProp odd = wanted, many = wanted, none = wanted;
    odd.size += 4096, many.numDevices = 17, none.numDevices = 0;
    printf("odd size %d, 17 GPUs %d, no GPUs %d\n", cuMulticastCreate(&third, &odd), cuMulticastCreate(&third, &many), cuMulticastCreate(&third, &none));
    CUmemAllocationProp here = properties(0, 0), there = properties(1, 0), third_gpu = properties(2, 0);
    MUST(cuMemCreate(&memory, 2 * bytes, &here, 0));
    MUST(cuMulticastAddDevice(object, 0));
    printf("added twice %d, no such GPU %d\n", cuMulticastAddDevice(object, 0), cuMulticastAddDevice(object, 77));
    printf("bound too early %d\n", cuMulticastBindMem(object, 0, memory, 0, bytes, 0));
    MUST(cuMulticastAddDevice(object, 1));
    printf("one too many %d\n", cuMulticastAddDevice(object, 2));
    printf("odd offset %d, odd offset of the memory %d, odd bytes %d\n", cuMulticastBindMem(object, 4096, memory, 0, bytes, 0),
        cuMulticastBindMem(object, 0, memory, 4096, bytes, 0), cuMulticastBindMem(object, 0, memory, 0, 4096, 0));
    printf("beyond the object %d, beyond the memory %d\n", cuMulticastBindMem(object, 0, memory, 0, 2 * bytes, 0), cuMulticastBindMem(object, 0, memory, 2 * bytes, bytes, 0));
    MUST(cuMemCreate(&other, bytes, &third_gpu, 0));
    printf("of another GPU %d\n", cuMulticastBindMem(object, 0, other, 0, bytes, 0));
    MUST(cuMulticastBindMem(object, 0, memory, bytes, bytes, 0));
    printf("twice %d, flags %d\n", cuMulticastBindMem(object, 0, memory, 0, bytes, 0), cuMulticastBindMem(object, 0, memory, 0, bytes, 1));
    printf("unbound other bytes %d, of another GPU %d\n", cuMulticastUnbind(object, 0, 0, 2 * bytes), cuMulticastUnbind(object, 1, 0, bytes));
    MUST(cuMulticastUnbind(object, 0, 0, bytes));
    printf("unbound again %d\n", cuMulticastUnbind(object, 0, 0, bytes));
    printf("memory as an object %d, an object as memory %d\n", cuMulticastAddDevice(memory, 1), cuMulticastBindMem(object, 0, object, 0, bytes, 0));
    CUmulticastObjectProp shared = object_of(1, 1);
    CUmemGenericAllocationHandle offered;
    MUST(cuMulticastCreate(&offered, &shared));
    MUST(cuMulticastAddDevice(offered, 0));
    printf("not to be shared %d\n", cuMulticastBindMem(offered, 0, memory, 0, bytes, 0));
    int descriptor;
    printf("not exported %d\n", cuMemExportToShareableHandle(&descriptor, object, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    (void)there;
}

static void fault(const char* what) {
    Node node = make(2, 0);
    MUST(cuCtxSetCurrent(node.contexts[0]));
    if (!strcmp(what, "load")) plain_load<<<1, 1>>>((const int*)node.address, (int*)node.result[0]);
    if (!strcmp(what, "plain")) load<<<1, 32>>>((const char*)node.own[0], (char*)node.result[0]);
    if (!strcmp(what, "unbound")) {
        MUST(cuMulticastUnbind(node.object, 1, 0, bytes));
        add<<<1, 32>>>((char*)node.address, 1);
    }
    if (!strcmp(what, "copy")) {
        char words[4];
        printf("copy: %d\n", cuMemcpyDtoH(words, node.address, sizeof words));
        return;
    }
    printf("%s: %d\n", what, cuCtxSynchronize());
}

static void pass(int socket, int* descriptor, int send) {
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
    iovec data = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (send) {
        cmsghdr* head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), descriptor, sizeof(int));
        if (sendmsg(socket, &message, 0) != 1) _exit(2);
    } else {
        if (recvmsg(socket, &message, 0) != 1) _exit(2);
        memcpy(descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    }
}

static void meet(int socket) {
    char byte = 1;
    if (write(socket, &byte, 1) != 1 || read(socket, &byte, 1) != 1) _exit(2);
}

// Two processes with a GPU each have one object between them; `dies` ends the second without a word.
static void processes(int dies) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) _exit(2);
    int rank = fork() == 0;
    int socket = ends[rank], descriptor;
    CUcontext context;
    CUmemGenericAllocationHandle object, memory;
    CUmemAllocationProp wanted = properties(rank, 1);
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, rank));
    MUST(cuCtxSetCurrent(context));
    if (rank == 0) {
        CUmulticastObjectProp all = object_of(2, 1);
        MUST(cuMulticastCreate(&object, &all));
        MUST(cuMemExportToShareableHandle(&descriptor, object, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        pass(socket, &descriptor, 1);
    } else {
        pass(socket, &descriptor, 0);
        MUST(cuMemImportFromShareableHandle(&object, (void*)(size_t)descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    }
    close(descriptor);
    MUST(cuMulticastAddDevice(object, rank));
    MUST(cuMemCreate(&memory, bytes, &wanted, 0));
    CUdeviceptr own = map(memory, rank);
    std::vector<char> zero(KINDS * room);
    MUST(cuMemcpyHtoD(own, zero.data(), zero.size()));
    meet(socket);
    MUST(cuMulticastBindMem(object, 0, memory, 0, bytes, 0));
    CUdeviceptr address = map(object, rank);
    meet(socket);
    add<<<count / 128, 128>>>((char*)address, rank + 1);
    MUST(cuCtxSynchronize());
    meet(socket);
    std::vector<char> got = read(own);
    int wrong = at<unsigned>(got, U32, 0) != 3u * count;
    for (int i = 0; i < count; i++) wrong += at<float>(got, F32, i) != 3 || at<unsigned long long>(got, U64, i) != 3ull << 33;
    printf("rank %d: %d wrong\n", rank, wrong);
    fflush(stdout);
    meet(socket);
    if (rank == 1) _exit(dies ? 7 : 0);
    int status;
    wait(&status);
    // What the other one bound is gone with it.
    add<<<1, 32>>>((char*)address, 1);
    printf("rank 0: alone: %d\n", cuCtxSynchronize());
}

int main(int, char** arguments) {
    if (!strcmp(arguments[1], "processes")) {
        processes(arguments[2] != nullptr);
        return 0;
    }
    MUST(cuInit(0));
    if (!strcmp(arguments[1], "values")) values(atoi(arguments[2]));
    if (!strcmp(arguments[1], "refusals")) refusals();
    if (!strcmp(arguments[1], "fault")) fault(arguments[2]);
    return 0;
}
