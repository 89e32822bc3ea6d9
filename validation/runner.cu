// Runs many workloads in one process, so that a profiler starts once for all of them.
//
//   runner LIST     each line of LIST: a label, a shared library built from a workload, its arguments
//
// Before each program it launches `begin_program` with as many blocks as the line's number, so that what a profiler
// lists can be told apart by program. Program output goes through; `RAN <line> <label> <exit code>` follows it.
//
// With RUNNER_PLACE=N some 2 MiB blocks stay allocated before each program, how many depends on N and the line: its
// memory lies elsewhere then, and with it the home of each line in L2.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <dlfcn.h>

__global__ void begin_program() {}

static void move_memory(unsigned place, unsigned number) {
    unsigned blocks = (place * 2654435761u ^ number * 2246822519u) >> 13 & 7;
    void* kept;
    for (unsigned block = 0; block < blocks; block++)
        if (cudaMalloc(&kept, 2 << 20) != cudaSuccess) return;
}

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: runner LIST\n");
        return 2;
    }
    // Programs that use the driver API find it here.
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) {
        std::fprintf(stderr, "runner: %s\n", dlerror());
        return 2;
    }
    const char* place = std::getenv("RUNNER_PLACE");
    std::ifstream list(argv[1]);
    std::string line;
    for (int number = 1; std::getline(list, line); number++) {
        std::istringstream words(line);
        std::string label, library, word;
        words >> label >> library;
        std::vector<std::string> arguments = {label};
        while (words >> word) arguments.push_back(word);
        std::vector<char*> pointers;
        for (std::string& argument : arguments) pointers.push_back(argument.data());
        pointers.push_back(nullptr);

        std::printf("BEGIN %d %s\n", number, label.c_str());
        std::fflush(stdout);
        // A library is closed never: its runtime still owns threads and a share of the context.
        void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        auto* program = opened ? reinterpret_cast<int (*)(int, char**)>(dlsym(opened, "workload_main")) : nullptr;
        if (!program) {
            std::fprintf(stderr, "runner: %s\n", dlerror());
            std::printf("RAN %d %s 127\n", number, label.c_str());
            continue;
        }
        begin_program<<<number, 1>>>();
        if (cudaDeviceSynchronize() != cudaSuccess) {
            std::printf("RAN %d %s 126\n", number, label.c_str());
            return 1;  // the context is lost
        }
        if (place) move_memory(unsigned(std::atoi(place)), unsigned(number));
        int code = program(int(arguments.size()), pointers.data());
        std::printf("RAN %d %s %d\n", number, label.c_str(), code);
        std::fflush(stdout);
    }
    return 0;
}
