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

// The finaliser of splitmix64.
inline uint64_t mix_bits(uint64_t z) {
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

enum Kind { INPUT, PARAMETERS, SYMBOL };

// Word j of a stream, as `generator/contents.py` defines it.
inline uint64_t content(uint64_t seed, uint64_t owner, Kind kind, uint64_t j) {
    static const uint32_t edges32[16] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000, 0x3f800000, 0xbf800000, 0x7f7fffff,
                                         0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff, 0x7fffffff, 0x4f000000, 0x477ff000, 0x3f000001};
    static const uint64_t edges64[16] = {0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x800fffffffffffff, 0x0010000000000000, 0x3ff0000000000000,
                                         0xbff0000000000000, 0x7fefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xffffffffffffffff,
                                         0x7fffffffffffffff, 0x43e0000000000000, 0x36a0000000000000, 0x47effffff0000000};
    static const uint16_t edges16[16] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0xffff, 0x3f80, 0x7f80, 0x0080, 0x7fff};
    uint64_t base = mix_bits(mix_bits(mix_bits(seed) + owner) + kind);
    uint64_t plain = mix_bits(base + (j + 1) * 0x9e3779b97f4a7c15);
    if (kind != INPUT)
        return plain;
    uint64_t pick = mix_bits(plain), shape = pick >> 61;
    if (shape == 4)
        return edges32[pick & 15] | (uint64_t)edges32[pick >> 4 & 15] << 32;
    if (shape == 5)
        return edges64[pick & 15];
    if (shape == 6)
        return plain & 0x0000003f0000003f;
    if (shape == 7)
        return edges16[pick & 15] | (uint64_t)edges16[pick >> 4 & 15] << 16 | (uint64_t)edges16[pick >> 8 & 15] << 32 | (uint64_t)edges16[pick >> 12 & 15] << 48;
    return plain;
}

inline std::vector<uint8_t> contents(uint64_t seed, uint64_t owner, Kind kind, size_t count) {
    std::vector<uint8_t> bytes(count);
    for (size_t index = 0; index < count; index += 8) {
        uint64_t word = content(seed, owner, kind, index / 8);
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

    std::vector<uint8_t> input_bytes(const Kernel &kernel) const { return contents(seed(), kernel.index(), INPUT, kernel.input); }

    std::vector<uint8_t> symbol_bytes(size_t place) const { return contents(seed(), place, SYMBOL, symbols[place].bytes); }

    std::vector<std::vector<uint8_t>> param_bytes(const Kernel &kernel) const {
        size_t total = 0, start = 0;
        for (size_t bytes : kernel.params)
            total += bytes;
        std::vector<uint8_t> stream = contents(seed(), kernel.index(), PARAMETERS, total);
        std::vector<std::vector<uint8_t>> all;
        for (size_t bytes : kernel.params) {
            all.emplace_back(stream.begin() + start, stream.begin() + start + bytes);
            start += bytes;
        }
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
