// Runs the kernels of a prepared folder on a GPU and writes what they compute.
//
// record FOLDER SEED RESULTS [full]: for each line of the manifest a record of the form's number, an error code of
// CUDA, the digest of all its results, and the digests of each 64 vectors (their lower 32 bits); with `full`, also the
// results of the first 256 vectors, as many bytes of each as count.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

typedef std::vector<char> Bytes;
constexpr size_t VECTORS = 4096, GROUP = 64, SPECIAL = 256, BLOCK = 256;

static Bytes load(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(file), {});
}

struct Form {
    std::string name, kernel;
    int cubin;
    size_t vectors;
    std::vector<size_t> bytes;
    std::vector<int> inputs;
};

static std::vector<Form> read_manifest(const std::string& path) {
    std::vector<Form> forms;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line[0] == '#') continue;
        Form form;
        std::stringstream fields(line);
        std::string field, part;
        std::getline(fields, form.name, '\t');
        std::getline(fields, field, '\t'), form.cubin = atoi(field.c_str());
        std::getline(fields, form.kernel, '\t');
        std::getline(fields, field, '\t'), form.vectors = atol(field.c_str());
        std::getline(fields, field, '\t');
        for (std::stringstream list(field); std::getline(list, part, ',');) form.bytes.push_back(atol(part.c_str()));
        std::getline(fields, field, '\t');
        for (std::stringstream list(field); std::getline(list, part, ',');) form.inputs.push_back(atoi(part.c_str()));
        forms.push_back(form);
    }
    return forms;
}

static uint64_t mix(uint64_t digest, uint64_t word) {
    digest = (digest ^ word) * 0x9e3779b97f4a7c15ull;
    return digest ^ digest >> 32;
}

static int record(const std::string& folder, const std::string& seed, const char* results, bool full, size_t start) {
    std::vector<Form> forms = read_manifest(folder + "/manifest.txt");
    Bytes inputs = load(folder + "/inputs." + seed);
    char *in, *out, *cells;
    cudaMalloc(&in, inputs.size());
    cudaMalloc(&out, 4 * VECTORS * 8);
    cudaMalloc(&cells, VECTORS * 32);
    cudaMemcpy(in, inputs.data(), inputs.size(), cudaMemcpyHostToDevice);
    FILE* file = fopen(results, "ab");
    int loaded = -1;
    cudaLibrary_t library = nullptr;
    std::vector<uint64_t> words(4 * VECTORS);
    for (size_t number = start; number < forms.size(); number++) {
        Form& form = forms[number];
        cudaError_t error = cudaSuccess;
        if (form.cubin != loaded) {
            if (library) cudaLibraryUnload(library);
            Bytes image = load(folder + "/" + std::to_string(form.cubin) + ".cubin");
            error = cudaLibraryLoadData(&library, image.data(), 0, 0, 0, 0, 0, 0);
            loaded = form.cubin;
        }
        cudaKernel_t kernel;
        if (!error) error = cudaLibraryGetKernel(&kernel, library, form.kernel.c_str());
        cudaMemset(out, 0, 4 * VECTORS * 8);
        cudaMemset(cells, 0, VECTORS * 32);
        char* pointers[4];
        for (int i = 0; i < 4; i++) pointers[i] = in + (form.inputs[i] < 0 ? 0 : form.inputs[i] * VECTORS * 8);
        void* arguments[] = {&pointers[0], &pointers[1], &pointers[2], &pointers[3], &out, &cells};
        if (!error) error = cudaLaunchKernel((void*)kernel, dim3(form.vectors / BLOCK), dim3(BLOCK), arguments, 0, 0);
        size_t count = form.bytes.size() * form.vectors;
        if (!error) error = cudaMemcpy(words.data(), out, count * 8, cudaMemcpyDeviceToHost);
        uint32_t head[2] = {(uint32_t)number, (uint32_t)error};
        fwrite(head, 8, 1, file);
        if (error) {
            fprintf(stderr, "%s: %s\n", form.name.c_str(), cudaGetErrorName(error));
            fclose(file);
            _exit(4);
        }
        uint64_t digest = 0;
        for (size_t i = 0; i < count; i++) digest = mix(digest, words[i]);
        fwrite(&digest, 8, 1, file);
        for (size_t first = 0; first < form.vectors; first += GROUP) {
            uint64_t part = 0;
            for (size_t result = 0; result < form.bytes.size(); result++)
                for (size_t i = 0; i < GROUP; i++) part = mix(part, words[result * form.vectors + first + i]);
            uint32_t low = (uint32_t)part;
            fwrite(&low, 4, 1, file);
        }
        for (size_t result = 0; full && result < form.bytes.size(); result++)
            for (size_t i = 0; i < SPECIAL; i++) fwrite(&words[result * form.vectors + i], form.bytes[result], 1, file);
    }
    fclose(file);
    return 0;
}

// Forms after the last one in a file of results.
static size_t done(const std::vector<Form>& forms, const char* results, bool full) {
    Bytes bytes = load(results);
    size_t at = 0, next = 0;
    while (at + 8 <= bytes.size()) {
        uint32_t head[2];
        memcpy(head, &bytes[at], 8);
        at += 8;
        next = head[0] + 1;
        if (head[1]) continue;
        at += 8 + forms[head[0]].vectors / GROUP * 4;
        for (size_t size : forms[head[0]].bytes) at += full ? SPECIAL * size : 0;
    }
    return next;
}

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    bool full = argc > 4 && !strcmp(argv[4], "full");
    if (argc > 5) return record(argv[1], argv[2], argv[3], full, atol(argv[5]));
    // A kernel that faults ends its process; the next one goes on behind it.
    std::vector<Form> forms = read_manifest(std::string(argv[1]) + "/manifest.txt");
    remove(argv[3]);
    for (size_t start = 0; start < forms.size();) {
        pid_t child = fork();
        if (child == 0) {
            std::string from = std::to_string(start);
            execl("/proc/self/exe", argv[0], argv[1], argv[2], argv[3], full ? "full" : "-", from.c_str(), (char*)0);
            _exit(9);
        }
        int status;
        waitpid(child, &status, 0);
        size_t next = done(forms, argv[3], full);
        if (next <= start) {
            printf("stuck at %zu, status %x\n", start, status);
            return 1;
        }
        start = next;
    }
    printf("%zu forms\n", forms.size());
    return 0;
}
