#include <sst/core/sst_config.h>

#include "flat_memory.h"

#include <sst/core/unitAlgebra.h>

#include <algorithm>

#include "femtoseconds.h"

namespace SST::Lockstep {

namespace {

// An answer on its way; it never leaves its component.
class ReadyEvent : public SST::Event {
public:
    ReadyEvent() = default;
    explicit ReadyEvent(SST::Interfaces::StandardMem::Request *answer) : answer(answer) {}

    SST::Interfaces::StandardMem::Request *answer = nullptr;

    void serialize_order(SST::Core::Serialization::serializer &ser) override
    {
        Event::serialize_order(ser);
        SST_SER(answer);
    }
    ImplementSerializable(ReadyEvent);
};

// How many bytes a request moves.
class Bytes : public SST::Interfaces::StandardMem::RequestHandler {
public:
    using Memory = SST::Interfaces::StandardMem;

    explicit Bytes(SST::Output *output) : RequestHandler(output) {}
    void handle(Memory::Read *request) override { count = request->size; }
    void handle(Memory::Write *request) override { count = request->size; }

    uint64_t count = 0;
};

} // namespace

FlatMemory::FlatMemory(SST::ComponentId_t id, SST::Params &params, SST::TimeConverter time, HandlerBase *handler)
    : StandardMem(id, params, time, handler), handler(handler)
{
    output.init("", 0, 0, SST::Output::STDOUT);
    picosecond = getTimeConverter("1ps");
    auto given = params.find<SST::UnitAlgebra>("latency", "300ns");
    auto rate = params.find<SST::UnitAlgebra>("bandwidth", "4800GB/s");
    line = params.find<Addr>("line_size", 128);
    if (!given.hasUnits("s") || !rate.hasUnits("B/s") || rate.getRoundedValue() == 0)
        output.fatal(CALL_INFO, 1, "%s: `latency` is in seconds, `bandwidth` in B/s and not 0\n", getName().c_str());
    if (line < 32 || (line & (line - 1)) != 0)
        output.fatal(CALL_INFO, 1, "%s: `line_size` is no power of two of at least 32\n", getName().c_str());
    latency = (given / SST::UnitAlgebra("1fs")).getRoundedValue();
    bandwidth = rate.getRoundedValue();
    self = configureSelfLink("self", picosecond, new Event::Handler<FlatMemory, &FlatMemory::answer>(this));
}

void FlatMemory::send(Request *request)
{
    Bytes bytes(&output);
    request->handle(&bytes);
    uint64_t now = getCurrentSimTime(picosecond) * PICOSECOND;
    free = std::max(free, now) + bytes.count * SECOND / bandwidth;
    if (request->needsResponse())
        self->send(picoseconds(free + latency - now), new ReadyEvent(request->makeResponse()));
    delete request;
}

void FlatMemory::answer(SST::Event *event)
{
    auto *ready = static_cast<ReadyEvent *>(event);
    auto *request = ready->answer;
    delete event;
    (*handler)(request);
}

} // namespace SST::Lockstep
