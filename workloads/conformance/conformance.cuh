// What the conformance programs share. Each prints one line a call: the call as it is
// written, and the name of its answer; and one line a finding, which it also judges.
// Addresses, times and names of devices never appear, so that a transcript is the same
// wherever CUDA behaves the same.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>

static int wrong_findings = 0;
// Whole lines leave at once, so that the transcript of a program that hangs says where.
static const int line_buffered = setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);

inline const char* answer_name(cudaError_t error) { return cudaGetErrorName(error); }

inline const char* answer_name(CUresult result) {
    const char* name = "?";
    cuGetErrorName(result, &name);
    return name;
}

// A call and its answer.
#define CALL(...) printf("%s: %s\n", #__VA_ARGS__, answer_name(__VA_ARGS__))

// A call that must succeed and is not worth a line.
#define MUST(...)                                                                   \
    do {                                                                            \
        auto answer = (__VA_ARGS__);                                                \
        if ((int)answer != 0) {                                                     \
            printf("%s: %s, line %d\n", #__VA_ARGS__, answer_name(answer), __LINE__); \
            wrong_findings++;                                                       \
        }                                                                           \
    } while (0)

// A finding with its value.
#define SHOW(value) printf("%s = %lld\n", #value, (long long)(value))

// A finding that has one right value.
#define EXPECT(...)                                                \
    do {                                                           \
        bool right = (__VA_ARGS__);                                \
        printf("%s: %s\n", #__VA_ARGS__, right ? "yes" : "NO");    \
        wrong_findings += !right;                                  \
    } while (0)

inline void chapter(const char* name) { printf("== %s\n", name); }

inline int finish() {
    printf("== %s\n", wrong_findings ? "something is wrong" : "all as expected");
    return wrong_findings ? 1 : 0;
}
