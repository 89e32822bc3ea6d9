// What the programs that call NCCL share.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <nccl.h>

// Ends the program with the place and NCCL's own sentence when a call fails.
#define CHECK_NCCL(call)                                                                              \
    do {                                                                                              \
        ncclResult_t status_ = (call);                                                                \
        if (status_ != ncclSuccess) {                                                                 \
            std::fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call,                    \
                         ncclGetErrorString(status_), ncclGetLastError(nullptr));                     \
            std::exit(2);                                                                             \
        }                                                                                             \
    } while (0)
