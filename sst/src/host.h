// The CPU: a program's CUDA calls, played from a record over a link.
#ifndef LOCKSTEP_SST_HOST_H
#define LOCKSTEP_SST_HOST_H

#include <sst/core/component.h>
#include <sst/core/link.h>
#include <sst/core/output.h>

#include "lockstep.h"

namespace SST::Lockstep {

class Host : public SST::Component {
public:
    SST_ELI_REGISTER_COMPONENT(Host, "lockstep", "host", SST_ELI_ELEMENT_VERSION(0, 3, 0),
                               "Plays the CUDA calls of a program from a record, one after the other",
                               COMPONENT_CATEGORY_PROCESSOR)

    SST_ELI_DOCUMENT_PARAMS({"record", "File of calls: `calls.record` of a run with `lockstep run --record full`", NULL},
                            {"verbose", "1: say how many entries were played at the end", "0"})

    SST_ELI_DOCUMENT_PORTS({"gpu", "Calls leave and answers come", {"lockstep.EntryEvent", "lockstep.AnswerEvent"}})

    SST_ELI_DOCUMENT_STATISTICS({"entries", "Entries of the record that were played", "entries", 1},
                                {"bytes", "Bytes that left over the link", "bytes", 1})

    Host(SST::ComponentId_t id, SST::Params &params);
    ~Host() override;

    void setup() override;
    void finish() override;

private:
    void answered(SST::Event *event);
    void send_next();

    SST::Output output;
    SST::Link *gpu = nullptr;
    LockstepRecord *record = nullptr;
    uint64_t played = 0;
    Statistic<uint64_t> *entries = nullptr;
    Statistic<uint64_t> *bytes = nullptr;
};

} // namespace SST::Lockstep

#endif
