// What leaves the L1 caches of a GPU, as requests of SST's StandardMem interface.
//
// A request of the GPU names sectors of 32 bytes in a line of 128. It becomes one request for each run of sectors
// within a line of the memory system, and is complete when all are answered. An atomic reads its sectors and writes
// them when they have come. Values stay in the GPU: what is written here are zeros.
#ifndef LOCKSTEP_SST_MEMORY_SIDE_H
#define LOCKSTEP_SST_MEMORY_SIDE_H

#include <sst/core/interfaces/stdMem.h>

#include <cstdint>
#include <unordered_map>

#include "lockstep.h"

namespace SST::Lockstep {

using SST::Interfaces::StandardMem;

class MemorySide {
public:
    // Addresses are taken modulo `size`, which is what the memory system has.
    MemorySide(StandardMem *interface, uint64_t size) : interface(interface), size(size) {}

    // SST's phases before time begins.
    void init(unsigned phase) { interface->init(phase); }
    void setup();

    // Sends a request of the GPU.
    void send(const LockstepMemoryRequest &request, uint64_t now);

    // Takes an answer. True if a request is complete with it: its number and when it was sent.
    bool answer(StandardMem::Request *answer, uint64_t *number, uint64_t *sent);

    // Requests that are not complete.
    size_t waiting() const { return requests.size(); }

private:
    struct Waiting {
        LockstepMemoryRequest request;
        uint64_t sent;
        unsigned parts;
        // An atomic that has yet to write what it reads.
        bool writes_next;
    };

    unsigned send_parts(const LockstepMemoryRequest &request, bool write);

    StandardMem *interface;
    uint64_t size;
    uint64_t line = 64;
    std::unordered_map<uint64_t, Waiting> requests;
    // The number of the GPU's request, by that of StandardMem's.
    std::unordered_map<StandardMem::Request::id_t, uint64_t> parts;
};

} // namespace SST::Lockstep

#endif
