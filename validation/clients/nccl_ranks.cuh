// Processes of one group of NCCL, forked or started by `mpirun`.
//
// NCCL's identifier of the group goes from the first process to the others over pipes: those of a fork, or named ones
// in a folder.
#pragma once

#include "nccl.cuh"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

// Ends the program with the place and the system's own sentence when a call fails.
#define CHECK_SYSTEM(call)                                                                            \
    do {                                                                                              \
        if ((call) < 0) {                                                                             \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, std::strerror(errno)); \
            std::exit(2);                                                                             \
        }                                                                                             \
    } while (0)

inline void send(int pipe, const ncclUniqueId& id) {
    // Shorter than what a pipe takes at once.
    if (write(pipe, &id, sizeof id) != sizeof id) CHECK_SYSTEM(-1);
}

inline ncclUniqueId receive(int pipe) {
    ncclUniqueId id;
    size_t got = 0;
    while (got < sizeof id) {
        ssize_t more = read(pipe, reinterpret_cast<char*>(&id) + got, sizeof id - got);
        CHECK_SYSTEM(more);
        if (more == 0) std::fprintf(stderr, "the first process has gone\n"), std::exit(2);
        got += more;
    }
    return id;
}

// What a process does, given its rank, how many there are, and the identifier; its exit code.
using Work = std::function<int(int, int, const ncclUniqueId&)>;

// Forks so many processes.
inline int fork_all(int ranks, const Work& work) {
    std::vector<int> readers(ranks), writers(ranks);
    for (int rank = 1; rank < ranks; rank++) {
        int ends[2];
        CHECK_SYSTEM(pipe(ends));
        readers[rank] = ends[0], writers[rank] = ends[1];
    }
    for (int rank = 0; rank < ranks; rank++) {
        pid_t child = fork();
        CHECK_SYSTEM(child);
        if (child > 0) continue;
        ncclUniqueId id;
        if (rank > 0) {
            id = receive(readers[rank]);
        } else {
            CHECK_NCCL(ncclGetUniqueId(&id));
            for (int other = 1; other < ranks; other++) send(writers[other], id);
        }
        std::exit(work(rank, ranks, id));
    }
    int failed = 0, status = 0;
    for (int rank = 0; rank < ranks; rank++) {
        CHECK_SYSTEM(wait(&status));
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return failed > 0;
}

// Is one process of `mpirun`.
inline int one_of_mpirun(const std::string& folder, int rank, int ranks, const Work& work) {
    auto name = [&](int rank) { return folder + "/" + std::to_string(rank); };
    auto opened = [&](int rank, int how) {
        if (mkfifo(name(rank).c_str(), 0600) < 0 && errno != EEXIST) CHECK_SYSTEM(-1);
        int pipe = open(name(rank).c_str(), how);
        CHECK_SYSTEM(pipe);
        return pipe;
    };
    ncclUniqueId id;
    if (rank > 0) {
        id = receive(opened(rank, O_RDONLY));
        CHECK_SYSTEM(unlink(name(rank).c_str()));
    } else {
        CHECK_NCCL(ncclGetUniqueId(&id));
        for (int other = 1; other < ranks; other++) send(opened(other, O_WRONLY), id);
    }
    return work(rank, ranks, id);
}
