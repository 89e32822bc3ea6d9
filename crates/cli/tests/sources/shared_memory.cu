// Memory that two processes share by a file descriptor, and that each of them has at two addresses; each on
// a GPU of its own if there are two.
//
// Usage: shared_memory [quit]     with `quit` the owner ends before the other one uses the memory
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include <cuda.h>
#include <cuda_runtime.h>

static const size_t bytes = 4 << 20;
static const int count = 4096;
static int rank = 0;

static void must(int error, const char* call) {
    if (error == 0) return;
    printf("rank %d: %s: %d\n", rank, call, error);
    fflush(stdout);
    _exit(3);
}
#define MUST(call) must((int)(call), #call)

// Writes by one address, counts by another and reads back by the first, within one kernel.
__global__ void both(int* one, int* other, int* wrong) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    one[index] = index;
    __threadfence();
    int before = atomicAdd(&other[index], 1000);
    __threadfence();
    int after = *(volatile int*)&one[index];
    if (before != index || after != index + 1000) atomicAdd(wrong, 1);
}

__global__ void add(int* words, int amount) { words[blockIdx.x * blockDim.x + threadIdx.x] += amount; }

static void send_descriptor(int socket, int descriptor) {
    char byte = 0, room[CMSG_SPACE(sizeof(int))] = {};
    iovec data = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    if (sendmsg(socket, &message, 0) != 1) _exit(2);
}

static int receive_descriptor(int socket) {
    char byte, room[CMSG_SPACE(sizeof(int))];
    iovec data = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    if (recvmsg(socket, &message, 0) != 1) _exit(2);
    int descriptor = -1;
    memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    return descriptor;
}

static int* map(CUmemGenericAllocationHandle memory, int gpu) {
    CUdeviceptr address;
    MUST(cuMemAddressReserve(&address, bytes, 0, 0, 0));
    MUST(cuMemMap(address, bytes, 0, memory, 0));
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, gpu}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    MUST(cuMemSetAccess(address, bytes, &access, 1));
    return (int*)address;
}

static void unmap(int* address) {
    MUST(cuMemUnmap((CUdeviceptr)address, bytes));
    MUST(cuMemAddressFree((CUdeviceptr)address, bytes));
}

static void expect(int* address, int first, const char* what) {
    std::vector<int> words(count);
    MUST(cudaMemcpy(words.data(), address, count * sizeof(int), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < count; i++) wrong += words[i] != first + i;
    printf("rank %d: %s: %d wrong\n", rank, what, wrong);
}

int main(int argc, char** argv) {
    bool quits = argc > 1 && strcmp(argv[1], "quit") == 0;
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) return 2;
    pid_t other = fork();
    rank = other == 0;
    int socket = sockets[rank];
    close(sockets[!rank]);
    int gpus = 0;
    MUST(cudaGetDeviceCount(&gpus));
    int gpu = rank % gpus;
    MUST(cudaSetDevice(gpu));
    int *wrong, result = -1;
    MUST(cudaMalloc(&wrong, sizeof(int)));
    MUST(cudaMemset(wrong, 0, sizeof(int)));
    CUmemGenericAllocationHandle memory, again;
    CUmemAllocationProp properties = {};
    if (rank == 0) {
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
        properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        MUST(cuMemCreate(&memory, bytes, &properties, 0));
    } else {
        int descriptor = receive_descriptor(socket);
        CUmemAllocationHandleType kind = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        MUST(cuMemImportFromShareableHandle(&memory, (void*)(uintptr_t)descriptor, kind));
        close(descriptor);
    }
    int *one = map(memory, gpu), *two = map(memory, gpu);
    MUST(cuMemGetAllocationPropertiesFromHandle(&properties, memory));
    printf("rank %d: memory of GPU %d\n", rank, properties.location.id);
    MUST(cuMemRelease(memory));
    MUST(cuMemRetainAllocationHandle(&again, two));
    char byte = 0;
    if (rank == 0) {
        both<<<count / 256, 256>>>(one, two, wrong);
        MUST(cudaMemcpy(&result, wrong, sizeof result, cudaMemcpyDeviceToHost));
        printf("rank 0: by two addresses: %d wrong\n", result);
        expect(two, 1000, "copied by the second");
        // What the host writes by one address is there by the other.
        std::vector<int> words(count);
        for (int i = 0; i < count; i++) words[i] = i;
        MUST(cudaMemcpy(two, words.data(), count * sizeof(int), cudaMemcpyHostToDevice));
        expect(one, 0, "written by the second");
        int descriptor = -1;
        MUST(cuMemExportToShareableHandle(&descriptor, again, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        send_descriptor(socket, descriptor);
        close(descriptor);
        if (read(socket, &byte, 1) != 1) return 2;
        if (!quits) {
            expect(one, 5, "added by the other process");
            if (write(socket, &byte, 1) != 1) return 2;
        }
    } else {
        expect(two, 0, "from the other process");
        if (!quits) add<<<count / 256, 256>>>(two, 5);
        MUST(cudaDeviceSynchronize());
        if (write(socket, &byte, 1) != 1) return 2;
        // With `quit` the other end closes when the owner has given everything back.
        ssize_t more = read(socket, &byte, 1);
        if (quits && more == 0) {
            add<<<count / 256, 256>>>(one, 7);
            expect(two, 7, "after its owner");
        }
    }
    MUST(cuMemRelease(again));
    unmap(one);
    unmap(two);
    if (rank == 0 && quits) {
        // Its context goes too, and the memory stays with who has it.
        MUST(cudaDeviceReset());
        close(socket);
    }
    fflush(stdout);
    if (rank == 0) wait(nullptr);
    return 0;
}
