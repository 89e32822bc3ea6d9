// One simulated GPU with CUDA's runtime before it, in SST's time.
//
// GPU time passes while a call is inside, as under `lockstep run`: the time that calls and answers are on the link, or
// with the host, is none of the GPU's. `shift` is how far SST's clock is ahead of the GPU's because of that.
#ifndef LOCKSTEP_SST_GPU_H
#define LOCKSTEP_SST_GPU_H

#include <sst/core/component.h>
#include <sst/core/interfaces/stdMem.h>
#include <sst/core/link.h>
#include <sst/core/output.h>

#include <deque>
#include <memory>
#include <vector>

#include "memory_side.h"

namespace SST::Lockstep {

class Gpu : public SST::Component {
public:
    SST_ELI_REGISTER_COMPONENT(Gpu, "lockstep", "gpu", SST_ELI_ELEMENT_VERSION(0, 3, 0),
                               "One NVIDIA GPU, cycle by cycle: CTA scheduler, SMs and, unless `memory` is filled, its "
                               "own L2 and DRAM",
                               COMPONENT_CATEGORY_PROCESSOR)

    SST_ELI_DOCUMENT_PARAMS(
        {"gpu", "GPU of Lockstep's catalogue (`lockstep gpus`), or the path of a .toml file", "h200"},
        {"settings", "Changes of its configuration, a list of KEY=VALUE", "[]"},
        {"sm_groups", "Groups of SMs, each on a worker thread; no result depends on it", "1"},
        {"quantum", "How far the GPU may run ahead of SST's time while its memory is its own", "10us"},
        {"memory_size", "Bytes of each memory in `memory`; addresses are taken modulo it", "16GiB"},
        {"max_outstanding", "Requests that each has at once, the others wait before it; 0 for no limit", "0"},
        {"memory_timeout", "How long `memory` may answer nothing while requests wait, before the run fails", "1ms"},
        {"statistics_file", "Every statistic of every part of the GPU, as CSV, written at the end", ""},
        {"verbose", "1: a line for each kernel", "0"})

    SST_ELI_DOCUMENT_PORTS({"host", "Calls come and answers leave", {"lockstep.EntryEvent", "lockstep.AnswerEvent"}})

    SST_ELI_DOCUMENT_SUBCOMPONENT_SLOTS({"memory",
                                         "What is behind the L1 caches, or several that share the slices of L2 among "
                                         "them; without it the GPU's own L2 and DRAM",
                                         "SST::Interfaces::StandardMem"})

    SST_ELI_DOCUMENT_STATISTICS({"kernels", "Kernels that ended", "kernels", 1},
                                {"cycles", "Cycles of each kernel, as in kernels.csv", "cycles", 1},
                                {"instructions", "Warp instructions of each kernel", "instructions", 1},
                                {"blocks", "Blocks (CTAs) of each kernel", "blocks", 1},
                                {"reads", "Requests to read that left the L1 caches", "requests", 1},
                                {"writes", "Requests to write that left the L1 caches", "requests", 1},
                                {"atomics", "Atomics that left the L1 caches", "requests", 1},
                                {"latency", "Of each request that left, until it was complete", "ps", 1})

    Gpu(SST::ComponentId_t id, SST::Params &params);
    ~Gpu() override;

    void init(unsigned phase) override;
    void setup() override;
    void finish() override;

private:
    static void told_request(void *self, const LockstepMemoryRequest *request);
    static void told_kernel(void *self, uint32_t launch);

    void create(SST::Params &params);
    void fill_memories(uint64_t size, uint64_t max_outstanding);
    void called(SST::Event *event);
    void woken(SST::Event *event);
    void answered(StandardMem::Request *answer, size_t memory);
    void advance();
    void send_due();
    void check_silence();
    void write_statistics();
    uint64_t counter(uint32_t launch, const char *name);
    uint64_t now() const;
    uint64_t delay_until(uint64_t time) const;
    void check(LockstepStatus status);

    SST::Output output;
    SST::TimeConverter picosecond;
    SST::Link *host = nullptr;
    SST::Link *self = nullptr;
    // A request goes to the one that its slice of L2 says; none if the GPU has its own.
    std::vector<std::unique_ptr<MemorySide>> memories;
    LockstepPlayback *playback = nullptr;
    LockstepProgress progress = {};
    // All times are in femtoseconds.
    uint64_t shift = 0;
    uint64_t quantum = 0;
    uint64_t memory_timeout = 0;
    // Requests that have left the GPU, and when they reach the memory: at the end of their epoch.
    std::deque<std::pair<uint64_t, LockstepMemoryRequest>> leaving;
    // Requests that left in the epoch which the GPU is in.
    std::vector<LockstepMemoryRequest> told;
    std::string statistics_file;
    uint64_t all_kernels = 0;
    uint64_t all_cycles = 0;
    Statistic<uint64_t> *kernels, *cycles, *instructions, *blocks, *reads, *writes, *atomics, *latency;
};

} // namespace SST::Lockstep

#endif
