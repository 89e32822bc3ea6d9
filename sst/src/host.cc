#include <sst/core/sst_config.h>

#include "host.h"

#include "events.h"

namespace SST::Lockstep {

Host::Host(SST::ComponentId_t id, SST::Params &params) : Component(id)
{
    output.init("", params.find<uint32_t>("verbose", 0), 0, SST::Output::STDOUT);
    auto path = params.find<std::string>("record", "");
    if (path.empty())
        output.fatal(CALL_INFO, 1, "%s: the parameter `record` names no file of calls\n", getName().c_str());
    char reason[1000];
    if (lockstep_record_open(path.c_str(), &record, reason, sizeof reason) != LOCKSTEP_STATUS_OK)
        output.fatal(CALL_INFO, 1, "%s: %s\n", getName().c_str(), reason);
    gpu = configureLink("gpu", new Event::Handler<Host, &Host::answered>(this));
    if (!gpu)
        output.fatal(CALL_INFO, 1, "%s: no link is at the port `gpu`\n", getName().c_str());
    entries = registerStatistic<uint64_t>("entries");
    bytes = registerStatistic<uint64_t>("bytes");
    registerAsPrimaryComponent();
    primaryComponentDoNotEndSim();
}

Host::~Host() { lockstep_record_close(record); }

void Host::setup() { send_next(); }

void Host::answered(SST::Event *event)
{
    delete event;
    send_next();
}

void Host::send_next()
{
    const uint8_t *entry = nullptr;
    size_t count = 0;
    if (lockstep_record_next(record, &entry, &count) != LOCKSTEP_STATUS_OK)
        output.fatal(CALL_INFO, 1, "%s: %s\n", getName().c_str(), lockstep_record_message(record));
    if (count == 0) {
        primaryComponentOKToEndSim();
        return;
    }
    ++played;
    entries->addData(1);
    bytes->addData(count);
    gpu->send(new EntryEvent(std::vector<uint8_t>(entry, entry + count)));
}

void Host::finish()
{
    output.verbose(CALL_INFO, 1, 0, "%s: %llu entries\n", getName().c_str(), static_cast<unsigned long long>(played));
}

} // namespace SST::Lockstep
