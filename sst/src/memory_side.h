// What leaves the L1 caches of a GPU, as requests of SST's StandardMem interface.
//
// A request of the GPU names sectors of 32 bytes in a line of 128. It becomes one request for each run of sectors
// within a line of the memory system, and is complete when all are answered. An atomic reads its sectors and writes
// them when they have come. Values stay in the GPU: what is written here are zeros.
//
// No more than `max_outstanding` are with the memory system at once, the others wait here in order. A cache that has
// run out of MSHRs would try all that wait again in each of its cycles.
#ifndef LOCKSTEP_SST_MEMORY_SIDE_H
#define LOCKSTEP_SST_MEMORY_SIDE_H

#include <sst/core/interfaces/stdMem.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "lockstep.h"

namespace SST::Lockstep {

using SST::Interfaces::StandardMem;

class MemorySide {
public:
    // Addresses are taken modulo `size`, which is what the memory system has.
    MemorySide(StandardMem *interface, uint64_t size, size_t max_outstanding)
        : interface(interface), size(size), max_outstanding(max_outstanding)
    {
    }

    // SST's phases before time begins.
    void init(unsigned phase) { interface->init(phase); }
    void setup();

    // Sends a request of the GPU.
    void send(const LockstepMemoryRequest &request, uint64_t now);

    // Takes an answer. True if a request is complete with it: its number and when it was sent.
    bool answer(StandardMem::Request *answer, uint64_t now, uint64_t *number, uint64_t *sent);

    // Requests that are not complete, and since when nothing was answered.
    size_t waiting() const { return requests.size(); }
    uint64_t silent_since() const { return last_answer; }

private:
    struct Waiting {
        LockstepMemoryRequest request;
        uint64_t sent;
        unsigned parts;
        // An atomic that has yet to write what it reads.
        bool writes_next;
    };

    // Makes the parts of a request and sends those that may leave; how many they are.
    unsigned send_parts(const LockstepMemoryRequest &request, bool write);
    void send_queued();

    StandardMem *interface;
    uint64_t size;
    size_t max_outstanding;
    uint64_t line = 64;
    // When the last answer came, or the first request after a time without any left.
    uint64_t last_answer = 0;
    std::unordered_map<uint64_t, Waiting> requests;
    // Parts that wait until others are answered, with the number of the GPU's request.
    std::deque<std::pair<StandardMem::Request *, uint64_t>> queue;
    // The number of the GPU's request, by that of StandardMem's.
    std::unordered_map<StandardMem::Request::id_t, uint64_t> outstanding;
};

} // namespace SST::Lockstep

#endif
