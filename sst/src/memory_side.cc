#include <sst/core/sst_config.h>

#include "memory_side.h"

namespace SST::Lockstep {

static constexpr uint64_t SECTOR = 32;
static constexpr unsigned SECTORS = 4;

void MemorySide::setup()
{
    interface->setup();
    if (interface->getLineSize() >= SECTOR)
        line = interface->getLineSize();
}

void MemorySide::send(const LockstepMemoryRequest &request, uint64_t now)
{
    if (requests.empty())
        last_answer = now;
    bool atomic = request.access == LOCKSTEP_ACCESS_ATOMIC;
    auto &waiting = requests[request.number] = {request, now, 0, atomic};
    waiting.parts = send_parts(request, request.access == LOCKSTEP_ACCESS_WRITE);
}

unsigned MemorySide::send_parts(const LockstepMemoryRequest &request, bool write)
{
    unsigned count = 0;
    for (unsigned first = 0; first < SECTORS;) {
        if (!(request.sectors >> first & 1)) {
            ++first;
            continue;
        }
        // As far as sectors go on in one line of the memory system.
        unsigned end = first + 1;
        while (end < SECTORS && (request.sectors >> end & 1) && end * SECTOR % line != 0)
            ++end;
        uint64_t address = request.address % size + first * SECTOR;
        uint64_t bytes = (end - first) * SECTOR;
        StandardMem::Request *part;
        if (write)
            part = new StandardMem::Write(address, bytes, std::vector<uint8_t>(bytes), false, 0, request.address, 0,
                                          request.sm);
        else
            part = new StandardMem::Read(address, bytes, 0, request.address, 0, request.sm);
        queue.emplace_back(part, request.number);
        ++count;
        first = end;
    }
    send_queued();
    return count;
}

void MemorySide::send_queued()
{
    for (; !queue.empty() && outstanding.size() < max_outstanding; queue.pop_front()) {
        auto [part, number] = queue.front();
        outstanding[part->getID()] = number;
        interface->send(part);
    }
}

bool MemorySide::answer(StandardMem::Request *answer, uint64_t now, uint64_t *number, uint64_t *sent)
{
    auto part = outstanding.find(answer->getID());
    delete answer;
    // Caches also tell of lines that they have given up.
    if (part == outstanding.end())
        return false;
    auto found = requests.find(part->second);
    outstanding.erase(part);
    last_answer = now;
    send_queued();
    Waiting &waiting = found->second;
    if (--waiting.parts > 0)
        return false;
    if (waiting.writes_next) {
        waiting.writes_next = false;
        waiting.parts = send_parts(waiting.request, true);
        return false;
    }
    *number = waiting.request.number;
    *sent = waiting.sent;
    requests.erase(found);
    return true;
}

} // namespace SST::Lockstep
