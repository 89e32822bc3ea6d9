// The host's own accesses to managed memory that has left: plain reads and writes, by two
// threads, by the C library and by system calls, and copies by CUDA.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

__managed__ int word;
__global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

static const size_t page = 4096, pages = 700, bytes = page * pages;
static unsigned char value(size_t index) { return (unsigned char)(index * 7 + index / page); }
static int wrong = 0;
static void expect(bool right, const char* what) {
    if (!right) {
        printf("wrong: %s\n", what);
        wrong++;
    }
}

int main() {
    unsigned char* memory;
    if (cudaMallocManaged(&memory, bytes)) return 2;
    for (size_t index = 0; index < bytes / 2; index++) memory[index] = value(index);
    cudaDeviceSynchronize();  // Everything leaves here.
    expect(memory[0] == value(0), "the first byte");
    bool right = true;
    for (size_t index = 0; index < bytes / 2; index++) right = right && memory[index] == value(index);
    expect(right, "reading all");
    expect(memory[bytes - 1] == 0, "what was never written");
    cudaDeviceSynchronize();  // Everything leaves again.
    memory[3 * page] = 1;
    expect(memory[3 * page] == 1, "writing");
    // System calls that read and write it.
    int ends[2];
    if (pipe(ends)) return 3;
    expect(write(ends[1], memory + 10 * page, 2 * page) == (ssize_t)(2 * page), "write");
    expect(read(ends[0], memory + 20 * page, 2 * page) == (ssize_t)(2 * page), "read");
    expect(memcmp(memory + 20 * page, memory + 10 * page, 2 * page) == 0, "through a pipe");
    FILE* file = tmpfile();
    expect(fwrite(memory + 30 * page, page, 4, file) == 4, "fwrite");
    rewind(file);
    expect(fread(memory + 40 * page, page, 4, file) == 4, "fread");
    expect(memcmp(memory + 40 * page, memory + 30 * page, 4 * page) == 0, "through a file");
    fclose(file);
    cudaDeviceSynchronize();
    // Two threads at once, at the same pages.
    auto sum = [&](size_t* result) {
        size_t all = 0;
        for (size_t index = 0; index < bytes / 2; index += 64) all += memory[index];
        *result = all;
    };
    size_t one = 0, two = 0;
    std::thread other(sum, &two);
    sum(&one);
    other.join();
    expect(one == two && one != 0, "two threads");
    cudaDeviceSynchronize();
    // A child may look at what has left, although it cannot call CUDA.
    pid_t child = fork();
    if (child == 0) _exit(memory[6 * page] == value(6 * page) ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    expect(status == 0, "a child");
    // Copies by CUDA are no accesses of the program.
    unsigned char* plain = (unsigned char*)malloc(bytes);
    printf("copies\n");
    fflush(stdout);
    if (cudaMemcpy(plain, memory, bytes, cudaMemcpyDefault)) return 4;
    if (cudaMemcpy(memory, plain, page, cudaMemcpyDefault)) return 5;
    expect(plain[5 * page + 3] == value(5 * page + 3), "copying");
    expect(word == 0, "a variable");
    word = 6;
    expect(word == 6, "a variable that is written");
    printf("wrong %d\n", wrong);
    cudaFree(memory);
    return wrong;
}
