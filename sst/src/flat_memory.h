// A memory without caches or banks behind SST's StandardMem interface: one latency, one bandwidth.
//
// For tests and first steps where no memHierarchy is at hand.
#ifndef LOCKSTEP_SST_FLAT_MEMORY_H
#define LOCKSTEP_SST_FLAT_MEMORY_H

#include <sst/core/interfaces/stdMem.h>
#include <sst/core/link.h>
#include <sst/core/output.h>

namespace SST::Lockstep {

class FlatMemory : public SST::Interfaces::StandardMem {
public:
    SST_ELI_REGISTER_SUBCOMPONENT(FlatMemory, "lockstep", "flatMemory", SST_ELI_ELEMENT_VERSION(0, 3, 0),
                                  "A memory of one latency and one bandwidth, for tests",
                                  SST::Interfaces::StandardMem)

    SST_ELI_DOCUMENT_PARAMS({"latency", "From the last byte of a request to its answer", "300ns"},
                            {"bandwidth", "Bytes that are read or written in a time", "4800GB/s"},
                            {"line_size", "Bytes of a line, which no request crosses", "128"})

    FlatMemory(SST::ComponentId_t id, SST::Params &params, SST::TimeConverter time, HandlerBase *handler);
    ~FlatMemory() override { delete handler; }

    void send(Request *request) override;
    Addr getLineSize() override { return line; }

    // Nothing happens before time begins, and nothing is polled.
    void sendUntimedData(Request *request) override { delete request; }
    Request *recvUntimedData() override { return nullptr; }
    Request *poll() override { return nullptr; }
    void setMemoryMappedAddressRegion(Addr, Addr) override {}

private:
    void answer(SST::Event *event);

    SST::Output output;
    HandlerBase *handler;
    SST::TimeConverter picosecond;
    SST::Link *self;
    Addr line;
    // Bytes a second.
    uint64_t bandwidth;
    // In femtoseconds: what an answer takes, and when the last byte so far is through.
    uint64_t latency;
    uint64_t free = 0;
};

} // namespace SST::Lockstep

#endif
