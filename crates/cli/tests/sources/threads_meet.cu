// Threads of one process, each with a GPU of its own, that meet as libraries of collectives do: over TCP on this
// machine, through sockets that listen, with short time-outs and naps, and through a thread that never calls CUDA.
//
// Usage: threads_meet [stranger PORT_FILE]
//
// Rank 1 is told by rank 0 when its kernel is done, and tells it back through the service. Both allocate on the first
// GPU, so that who came first shows in the addresses. With `stranger` rank 1 waits for somebody from outside the run
// instead, to whom PORT_FILE names the port.
#include <arpa/inet.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <cuda_runtime.h>

#define MUST(call)                                                                             \
    do {                                                                                       \
        cudaError_t error = (call);                                                            \
        if (error != cudaSuccess) {                                                            \
            printf("%s: %s\n", #call, cudaGetErrorName(error));                                \
            fflush(stdout);                                                                    \
            _exit(3);                                                                          \
        }                                                                                      \
    } while (0)

// As MUST, for the system.
static int must(int answer, const char* what) {
    if (answer < 0) {
        perror(what);
        _exit(4);
    }
    return answer;
}

static const int rounds = 2;
static std::atomic<bool> stop{false};
static std::atomic<int> done{0};
static void* seen[2][rounds];

__global__ void work(int* out, int rank) {
    int value = rank;
    for (int i = 0; i < 200; i++) value = value * 1664525 + 1013904223;
    out[threadIdx.x] = value;
}

static int listen_here(sockaddr_in& address) {
    int socket_ = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    socklen_t size = sizeof(address);
    memset(&address, 0, size);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), "bind");
    must(listen(socket_, 8), "listen");
    must(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
    return socket_;
}

static int connect_to(const sockaddr_in& address) {
    int socket_ = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    must(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), "connect");
    return socket_;
}

// Waits until a socket has something, so many milliseconds at a time.
static void wait_for(int socket_, int milliseconds) {
    pollfd file = {socket_, POLLIN, 0};
    while (must(poll(&file, 1, milliseconds), "poll") == 0) {}
}

static int accept_one(int listening, int milliseconds) {
    wait_for(listening, milliseconds);
    return must(accept(listening, nullptr, nullptr), "accept");
}

static void send_byte(int socket_) {
    char byte = 1;
    must(static_cast<int>(write(socket_, &byte, 1)), "write");
}

static void take_byte(int socket_, int milliseconds) {
    char byte;
    wait_for(socket_, milliseconds);
    must(static_cast<int>(read(socket_, &byte, 1)), "read");
}

// Passes on what comes from rank 1 to rank 0, and looks now and then whether it is to end.
static void serve(int listening, sockaddr_in first) {
    int from = accept_one(listening, 20), to = connect_to(first);
    pollfd file = {from, POLLIN, 0};
    while (!stop) {
        char byte;
        if (must(poll(&file, 1, 20), "poll") == 0) continue;
        if (read(from, &byte, 1) != 1) break;
        send_byte(to);
    }
    close(from);
    close(to);
}

// A kernel, and memory on the first GPU.
static void compute(int rank, int round) {
    int* out;
    MUST(cudaSetDevice(rank));
    MUST(cudaMalloc(&out, 4096));
    work<<<4, 32>>>(out, rank);
    MUST(cudaDeviceSynchronize());
    MUST(cudaSetDevice(0));
    MUST(cudaMalloc(&seen[rank][round], 1 << (12 + rank + round)));
}

static void rank_0(int listening, sockaddr_in second) {
    int from = -1, to = -1;
    for (int round = 0; round < rounds; round++) {
        compute(0, round);
        if (to < 0) to = connect_to(second);
        send_byte(to);
        if (from < 0) from = accept_one(listening, 500);
        take_byte(from, 10);
    }
    close(from);
    close(to);
    done++;
}

static void rank_1(int listening, sockaddr_in service) {
    int to = connect_to(service), from = -1;
    MUST(cudaSetDevice(1));
    for (int round = 0; round < rounds; round++) {
        if (from < 0) from = accept_one(listening, 500);
        take_byte(from, 30);
        send_byte(to);
        compute(1, round);
    }
    close(from);
    close(to);
    done++;
}

// Waits for a stranger while the first GPU works.
static void meet_stranger(const char* file, int listening, sockaddr_in address) {
    std::thread waits([&] {
        MUST(cudaSetDevice(1));
        int from = accept_one(listening, 500);
        compute(1, 0);
        close(from);
        done++;
    });
    // It has to be asleep while time passes, and the stranger is told only afterwards.
    for (int round = 0; round < rounds; round++) compute(0, round);
    FILE* out = fopen(file, "w");
    fprintf(out, "%d\n", ntohs(address.sin_port));
    fclose(out);
    waits.join();
}

int main(int argc, char** argv) {
    sockaddr_in addresses[3];
    int listening[3];
    for (int i = 0; i < 3; i++) listening[i] = listen_here(addresses[i]);
    MUST(cudaFree(nullptr));
    if (argc > 2) {
        meet_stranger(argv[2], listening[1], addresses[1]);
        printf("PASS: met\n");
        return 0;
    }
    std::thread service(serve, listening[2], addresses[0]);
    std::thread ranks[2] = {std::thread(rank_0, listening[0], addresses[1]),
                            std::thread(rank_1, listening[1], addresses[2])};
    while (done != 2) usleep(500);
    void* last;
    MUST(cudaMalloc(&last, 1 << 20));
    MUST(cudaDeviceSynchronize());
    stop = true;
    service.join();
    for (std::thread& rank : ranks) rank.join();
    printf("PASS: met\n");
    return 0;
}
