// The manifest of a program, the bytes its kernels are given, and the digest of what they write: one copy for the
// runner and for the host's judge.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

inline uint64_t splitmix(uint64_t state) {
    uint64_t z = state + 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

inline uint64_t fnv(uint64_t hash, const uint8_t *bytes, size_t count) {
    for (size_t index = 0; index < count; index++)
        hash = (hash ^ bytes[index]) * 0x100000001b3;
    return hash;
}

const uint64_t FNV_START = 0xcbf29ce484222325;

// Random bytes that depend on nothing else than these arguments. `kind` is `input`, `param0`, `symbol NAME`.
inline std::vector<uint8_t> bytes_of(uint64_t seed, uint64_t kernel, const std::string &kind, size_t count) {
    uint64_t stream = splitmix(splitmix(splitmix(seed) ^ kernel) ^ fnv(FNV_START, (const uint8_t *)kind.data(), kind.size()));
    std::vector<uint8_t> bytes(count);
    for (size_t index = 0; index < count; index += 8) {
        uint64_t word = splitmix(stream + index / 8 * 0x9e3779b97f4a7c15);
        for (size_t byte = index; byte < index + 8 && byte < count; byte++)
            bytes[byte] = (uint8_t)(word >> 8 * (byte - index));
    }
    return bytes;
}

inline uint64_t digest_of(const uint8_t *output, size_t output_bytes, const uint8_t *memory, size_t memory_bytes) {
    return fnv(fnv(FNV_START, output, output_bytes), memory, memory_bytes);
}

struct Symbol {
    std::string name;
    size_t bytes = 0;
};

struct Kernel {
    std::string name;
    unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
    size_t shared = 0, input = 0, output = 0, memory = 0;
    std::vector<size_t> params;
    std::map<std::string, uint64_t> limits;
    bool cooperative = false, host = true;

    uint64_t index() const { return strtoull(name.c_str() + 1, nullptr, 10); }

    uint64_t limit(const std::string &which) const {
        auto found = limits.find(which);
        return found == limits.end() ? 0 : found->second;
    }
};

struct Program {
    std::string name, image;
    std::vector<Kernel> kernels;
    std::vector<Symbol> symbols;

    uint64_t seed() const { return strtoull(name.c_str() + 1, nullptr, 10); }

    std::vector<uint8_t> input_bytes(const Kernel &kernel) const { return bytes_of(seed(), kernel.index(), "input", kernel.input); }

    std::vector<uint8_t> symbol_bytes(const Symbol &symbol) const { return bytes_of(seed(), 0, "symbol " + symbol.name, symbol.bytes); }

    std::vector<std::vector<uint8_t>> param_bytes(const Kernel &kernel) const {
        std::vector<std::vector<uint8_t>> all;
        for (size_t number = 0; number < kernel.params.size(); number++)
            all.push_back(bytes_of(seed(), kernel.index(), "param" + std::to_string(number), kernel.params[number]));
        return all;
    }

    static Program read(const std::string &manifest, const std::string &image) {
        std::ifstream file(manifest);
        if (!file) {
            fprintf(stderr, "no manifest %s\n", manifest.c_str());
            exit(2);
        }
        Program program;
        size_t slash = manifest.rfind('/'), start = slash == std::string::npos ? 0 : slash + 1;
        program.name = manifest.substr(start, manifest.rfind('.') - start);
        program.image = image;
        std::string line;
        while (std::getline(file, line)) {
            std::istringstream words(line);
            std::string first;
            if (!(words >> first) || first[0] == '#')
                continue;
            if (first == "symbol") {
                Symbol symbol;
                words >> symbol.name >> symbol.bytes;
                program.symbols.push_back(symbol);
            } else if (first[0] == 'k') {
                program.kernels.push_back(read_kernel(first, words));
            }
        }
        return program;
    }

  private:
    static Kernel read_kernel(const std::string &name, std::istringstream &words) {
        Kernel kernel;
        kernel.name = name;
        std::string key, value;
        while (words >> key) {
            if (key == "grid" || key == "block") {
                unsigned *size = key == "grid" ? kernel.grid : kernel.block;
                words >> size[0] >> size[1] >> size[2];
                continue;
            }
            words >> value;
            uint64_t number = strtoull(value.c_str(), nullptr, 10);
            if (key == "shared")
                kernel.shared = number;
            else if (key == "input")
                kernel.input = number;
            else if (key == "output")
                kernel.output = number;
            else if (key == "memory")
                kernel.memory = number;
            else if (key == "cooperative")
                kernel.cooperative = number;
            else if (key == "host")
                kernel.host = number;
            else if (key == "params" || key == "limits")
                read_list(kernel, key, value);
        }
        return kernel;
    }

    // `17,8,3`, `stack=16384,heap=1048576`; `-` and `0` are empty.
    static void read_list(Kernel &kernel, const std::string &key, const std::string &value) {
        std::istringstream parts(value);
        std::string part;
        while (std::getline(parts, part, ',')) {
            size_t equals = part.find('=');
            if (equals != std::string::npos)
                kernel.limits[part.substr(0, equals)] = strtoull(part.c_str() + equals + 1, nullptr, 10);
            else if (uint64_t bytes = strtoull(part.c_str(), nullptr, 10))
                kernel.params.push_back(bytes);
        }
    }
};

// Every word of output, and every one of memory that is not zero.
inline void dump(FILE *file, const Program &program, const Kernel &kernel, const uint8_t *output, const uint8_t *memory) {
    auto words = [&](const char *what, const uint8_t *bytes, size_t count, bool zeros) {
        for (size_t index = 0; index < count; index += 8) {
            uint64_t word = 0;
            for (size_t byte = index; byte < index + 8 && byte < count; byte++)
                word |= (uint64_t)bytes[byte] << 8 * (byte - index);
            if (word || zeros)
                fprintf(file, "%s %s %s %zu %016llx\n", program.name.c_str(), kernel.name.c_str(), what, index / 8, (unsigned long long)word);
        }
    };
    words("output", output, kernel.output * 8, true);
    words("memory", memory, kernel.memory, false);
}
