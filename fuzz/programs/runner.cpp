// A runner of program images: loads each with the driver API, launches its kernels, prints a digest of each.
//
//   runner [--only p3:k4] [--after p3:k4] [--dump] [--limit SECONDS] LIST
//
// LIST has a line `IMAGE MANIFEST` for each program, with paths from LIST's folder. A line is printed for each kernel:
// `p3 k4 0123456789abcdef`, or `p3 k4 error 719`, `p3 k4 error hang`, `p3 k4 error crash`. With --dump the words of
// output and memory precede it.
//
// A fault leaves a context of no use. So a child process makes the launches and a parent, which never calls CUDA,
// starts another one behind the kernel that failed.
//
// Build: g++ -O2 -std=c++17 -I CUDA/include runner.cpp -o runner -ldl
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <algorithm>
#include <cerrno>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <poll.h>
#include <signal.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "include/manifest.h"

namespace {

struct Options {
    std::string list;
    std::string only_program, only_kernel;
    std::string after; // what comes before, and this, is left out
    bool dump = false;
    int limit = 60;
};

[[noreturn]] void fail(const std::string &why) {
    fprintf(stderr, "runner: %s\n", why.c_str());
    exit(2);
}

// The driver's calls under the names that this cuda.h gives them.
struct Driver {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    template <typename Call> Call find(const char *name) {
        void *call = library ? dlsym(library, name) : nullptr;
        if (!call)
            fail(std::string("no ") + name + " in libcuda.so.1");
        return reinterpret_cast<Call>(call);
    }

#define TEXT(name) #name
#define SPELL(name) TEXT(name)
#define CALL(member, name) decltype(&name) member = find<decltype(&name)>(SPELL(name))
    CALL(init, cuInit);
    CALL(device_get, cuDeviceGet);
    CALL(retain, cuDevicePrimaryCtxRetain);
    CALL(set_current, cuCtxSetCurrent);
    CALL(synchronize, cuCtxSynchronize);
    CALL(set_limit, cuCtxSetLimit);
    CALL(load, cuModuleLoadData);
    CALL(unload, cuModuleUnload);
    CALL(function, cuModuleGetFunction);
    CALL(global, cuModuleGetGlobal);
    CALL(attribute, cuFuncSetAttribute);
    CALL(allocate, cuMemAlloc);
    CALL(free, cuMemFree);
    CALL(fill, cuMemsetD8);
    CALL(upload, cuMemcpyHtoD);
    CALL(download, cuMemcpyDtoH);
    CALL(launch, cuLaunchKernel);
    CALL(launch_cooperative, cuLaunchCooperativeKernel);
#undef CALL
#undef SPELL
#undef TEXT
};

// Device memory that grows when more is asked for.
struct Buffer {
    CUdeviceptr address = 0;
    size_t capacity = 0;

    CUresult reserve(Driver &driver, size_t bytes) {
        if (bytes <= capacity)
            return CUDA_SUCCESS;
        if (address)
            driver.free(address);
        address = 0;
        capacity = 0;
        CUresult result = driver.allocate(&address, bytes * 2);
        if (result == CUDA_SUCCESS)
            capacity = bytes * 2;
        return result;
    }
};

struct Task {
    const Program *program;
    const Kernel *kernel;
};

// What launches: one context, until an error stays in it.
class Child {
  public:
    Child(const Options &options, const std::vector<Task> &tasks, int pipe) : options(options), tasks(tasks), report(fdopen(pipe, "w")) {}

    void run(size_t from) {
        CUdevice device;
        CUcontext context;
        if (driver.init(0) || driver.device_get(&device, 0) || driver.retain(&context, device) || driver.set_current(context))
            fail("no device");
        set_heap();
        for (size_t number = from; number < tasks.size(); number++) {
            fprintf(report, "begin %zu\n", number);
            fflush(report);
            CUresult result = load(*tasks[number].program);
            if (result == CUDA_SUCCESS)
                result = run(*tasks[number].program, *tasks[number].kernel);
            const char *program = tasks[number].program->name.c_str(), *kernel = tasks[number].kernel->name.c_str();
            if (result == CUDA_SUCCESS)
                fprintf(report, "done %zu %s %s %016llx\n", number, program, kernel, (unsigned long long)digest);
            else
                fprintf(report, "done %zu %s %s error %d\n", number, program, kernel, (int)result);
            fflush(report);
            if (result != CUDA_SUCCESS && driver.synchronize() != CUDA_SUCCESS)
                _exit(1);
        }
        _exit(0);
    }

  private:
    const Options &options;
    const std::vector<Task> &tasks;
    FILE *report;
    Driver driver;
    const Program *loaded = nullptr;
    CUmodule module = nullptr;
    CUresult load_result = CUDA_SUCCESS;
    Buffer input, results;
    uint64_t stack = 0;
    uint64_t digest = 0;

    // The heap's size cannot change once a kernel has used it: it gets the largest that any kernel asks for.
    void set_heap() {
        uint64_t heap = 0;
        for (const Task &task : tasks)
            heap = std::max(heap, task.kernel->limit("heap"));
        if (heap)
            driver.set_limit(CU_LIMIT_MALLOC_HEAP_SIZE, heap);
    }

    CUresult load(const Program &program) {
        if (loaded == &program)
            return load_result;
        if (module)
            driver.unload(module);
        module = nullptr;
        loaded = &program;
        std::ifstream file(program.image, std::ios::binary);
        std::string image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        load_result = image.empty() ? CUDA_ERROR_FILE_NOT_FOUND : driver.load(&module, image.c_str());
        if (load_result != CUDA_SUCCESS)
            module = nullptr;
        else
            load_result = fill_symbols(program);
        return load_result;
    }

    CUresult fill_symbols(const Program &program) {
        for (size_t place = 0; place < program.symbols.size(); place++) {
            const Symbol &symbol = program.symbols[place];
            CUdeviceptr address;
            size_t bytes;
            CUresult result = driver.global(&address, &bytes, module, symbol.name.c_str());
            if (result == CUDA_ERROR_NOT_FOUND)
                continue; // the compiler dropped it: nothing reads it
            if (result == CUDA_SUCCESS)
                result = driver.upload(address, program.symbol_bytes(place).data(), std::min<size_t>(bytes, symbol.bytes));
            if (result != CUDA_SUCCESS)
                return result;
        }
        return CUDA_SUCCESS;
    }

    CUresult run(const Program &program, const Kernel &kernel) {
        CUfunction function;
        CUresult result = driver.function(&function, module, kernel.name.c_str());
        if (result == CUDA_SUCCESS && kernel.limit("stack") > stack) {
            stack = kernel.limit("stack");
            result = driver.set_limit(CU_LIMIT_STACK_SIZE, stack);
        }
        if (result == CUDA_SUCCESS && kernel.shared > 48 * 1024)
            result = driver.attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)kernel.shared);
        size_t output_bytes = (kernel.output * 8 + 255) / 256 * 256, result_bytes = output_bytes + kernel.memory;
        if (result == CUDA_SUCCESS)
            result = input.reserve(driver, kernel.input + 256);
        if (result == CUDA_SUCCESS)
            result = results.reserve(driver, result_bytes + 256);
        if (result == CUDA_SUCCESS && kernel.input)
            result = driver.upload(input.address, program.input_bytes(kernel).data(), kernel.input);
        if (result == CUDA_SUCCESS && result_bytes)
            result = driver.fill(results.address, 0, result_bytes);
        if (result != CUDA_SUCCESS)
            return result;

        CUdeviceptr output = results.address, memory = results.address + output_bytes;
        std::vector<void *> arguments = {&input.address, &output, &memory};
        std::vector<std::vector<uint8_t>> params = program.param_bytes(kernel);
        for (std::vector<uint8_t> &param : params)
            arguments.push_back(param.data());
        const unsigned *grid = kernel.grid, *block = kernel.block;
        if (kernel.cooperative)
            result = driver.launch_cooperative(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], kernel.shared, nullptr, arguments.data());
        else
            result = driver.launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], kernel.shared, nullptr, arguments.data(), nullptr);
        if (result == CUDA_SUCCESS)
            result = driver.synchronize();
        std::vector<uint8_t> bytes(result_bytes);
        if (result == CUDA_SUCCESS && result_bytes)
            result = driver.download(bytes.data(), results.address, result_bytes);
        if (result == CUDA_SUCCESS) {
            digest = digest_of(bytes.data(), kernel.output * 8, bytes.data() + output_bytes, kernel.memory);
            if (options.dump)
                dump(report, program, kernel, bytes.data(), bytes.data() + output_bytes);
        }
        return result;
    }
};

// What remains of the tasks after a child that ran from `from` on; it is killed where one takes too long.
size_t supervise(const Options &options, const std::vector<Task> &tasks, size_t from) {
    int ends[2];
    if (pipe(ends))
        fail("no pipe");
    fflush(stdout);
    pid_t process = fork();
    if (process < 0)
        fail("no fork");
    if (process == 0) {
        close(ends[0]);
        Child(options, tasks, ends[1]).run(from);
    }
    close(ends[1]);
    size_t next = from;
    bool begun = false, hangs = false;
    std::string text;
    char piece[1 << 16];
    for (;;) {
        pollfd wait = {ends[0], POLLIN, 0};
        int ready = poll(&wait, 1, options.limit * 1000);
        if (ready == 0) {
            hangs = true;
            kill(process, SIGKILL);
            break;
        }
        ssize_t count = ready < 0 ? -1 : read(ends[0], piece, sizeof piece);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        text.append(piece, count);
        size_t start = 0, end;
        for (; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
            const char *line = text.c_str() + start;
            if (!strncmp(line, "begin ", 6)) {
                begun = true;
            } else if (!strncmp(line, "done ", 5)) {
                char *rest;
                next = strtoull(line + 5, &rest, 10) + 1;
                begun = false;
                fwrite(rest + 1, 1, text.c_str() + end + 1 - (rest + 1), stdout);
            } else {
                fwrite(line, 1, end + 1 - start, stdout);
            }
        }
        text.erase(0, start);
    }
    close(ends[0]);
    int status = 0;
    waitpid(process, &status, 0);
    if (begun && next < tasks.size()) {
        printf("%s %s error %s\n", tasks[next].program->name.c_str(), tasks[next].kernel->name.c_str(), hangs ? "hang" : "crash");
        fflush(stdout);
        return next + 1;
    }
    if (next == from && from < tasks.size())
        fail("the child ended before its first launch");
    return next;
}

Options parse(int count, char **arguments) {
    Options options;
    for (int index = 1; index < count; index++) {
        std::string argument = arguments[index];
        bool has_value = index + 1 < count;
        if (argument == "--dump") {
            options.dump = true;
        } else if (argument == "--only" && has_value) {
            std::string only = arguments[++index];
            size_t colon = only.find(':');
            options.only_program = only.substr(0, colon);
            if (colon != std::string::npos)
                options.only_kernel = only.substr(colon + 1);
        } else if (argument == "--after" && has_value) {
            options.after = arguments[++index];
        } else if (argument == "--limit" && has_value) {
            options.limit = atoi(arguments[++index]);
        } else if (argument[0] != '-' && options.list.empty()) {
            options.list = argument;
        } else {
            fail("usage: runner [--only p3:k4] [--after p3:k4] [--dump] [--limit SECONDS] LIST");
        }
    }
    if (options.list.empty() || options.limit <= 0)
        fail("usage: runner [--only p3:k4] [--after p3:k4] [--dump] [--limit SECONDS] LIST");
    return options;
}

} // namespace

int main(int count, char **arguments) {
    Options options = parse(count, arguments);
    std::ifstream list(options.list);
    if (!list)
        fail("no list " + options.list);
    std::string folder = options.list.substr(0, options.list.rfind('/') + 1);
    auto beside = [&](const std::string &path) { return path[0] == '/' ? path : folder + path; };
    std::vector<Program> programs;
    std::string image, manifest;
    while (list >> image >> manifest)
        programs.push_back(Program::read(beside(manifest), beside(image)));
    std::vector<Task> tasks;
    bool begun = options.after.empty();
    for (const Program &program : programs)
        for (const Kernel &kernel : program.kernels)
            if (!begun)
                begun = options.after == program.name + ":" + kernel.name;
            else if ((options.only_program.empty() || options.only_program == program.name) && (options.only_kernel.empty() || options.only_kernel == kernel.name))
                tasks.push_back({&program, &kernel});
    for (size_t next = 0; next < tasks.size();)
        next = supervise(options, tasks, next);
    return 0;
}
