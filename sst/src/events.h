// What travels between `lockstep.host` and `lockstep.gpu`, and what a GPU wakes itself with.
#ifndef LOCKSTEP_SST_EVENTS_H
#define LOCKSTEP_SST_EVENTS_H

#include <sst/core/event.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace SST::Lockstep {

// One entry of a record of CUDA calls, on its way to the GPU: a call with its arguments, what the host wrote, or what
// the program was answered when it was recorded.
class EntryEvent : public SST::Event {
public:
    EntryEvent() = default;
    explicit EntryEvent(std::vector<uint8_t> bytes) : entry(std::move(bytes)) {}

    std::vector<uint8_t> entry;

    void serialize_order(SST::Core::Serialization::serializer &ser) override
    {
        Event::serialize_order(ser);
        SST_SER(entry);
    }
    ImplementSerializable(SST::Lockstep::EntryEvent);
};

// The entry before it is done, and the next may come.
class AnswerEvent : public SST::Event {
public:
    AnswerEvent() = default;

    void serialize_order(SST::Core::Serialization::serializer &ser) override { Event::serialize_order(ser); }
    ImplementSerializable(SST::Lockstep::AnswerEvent);
};

// A GPU has come to a boundary of epochs that it has simulated already.
class WakeEvent : public SST::Event {
public:
    WakeEvent() = default;

    void serialize_order(SST::Core::Serialization::serializer &ser) override { Event::serialize_order(ser); }
    ImplementSerializable(SST::Lockstep::WakeEvent);
};

} // namespace SST::Lockstep

#endif
