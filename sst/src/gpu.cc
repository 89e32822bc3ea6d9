#include <sst/core/sst_config.h>

#include "gpu.h"

#include <sst/core/unitAlgebra.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "events.h"
#include "femtoseconds.h"

namespace SST::Lockstep {

Gpu::Gpu(SST::ComponentId_t id, SST::Params &params) : Component(id)
{
    output.init("", params.find<uint32_t>("verbose", 0), 0, SST::Output::STDOUT);
    picosecond = getTimeConverter("1ps");
    auto units = [&](const char *key, const char *usual, const char *unit) {
        SST::UnitAlgebra value = params.find<SST::UnitAlgebra>(key, usual);
        if (!value.hasUnits(unit))
            output.fatal(CALL_INFO, 1, "%s: `%s` = %s is not in units of %s\n", getName().c_str(), key,
                         value.toString().c_str(), unit);
        return value;
    };
    quantum = (units("quantum", "10us", "s") / SST::UnitAlgebra("1fs")).getRoundedValue();
    memory_timeout = (units("memory_timeout", "1ms", "s") / SST::UnitAlgebra("1fs")).getRoundedValue();
    uint64_t size = units("memory_size", "16GiB", "B").getRoundedValue();
    if (size < 128 || size % 128 != 0)
        output.fatal(CALL_INFO, 1, "%s: `memory_size` is no multiple of 128 bytes\n", getName().c_str());
    statistics_file = params.find<std::string>("statistics_file", "");

    host = configureLink("host", picosecond, new Event::Handler<Gpu, &Gpu::called>(this));
    if (!host)
        output.fatal(CALL_INFO, 1, "%s: no link is at the port `host`\n", getName().c_str());
    self = configureSelfLink("self", picosecond, new Event::Handler<Gpu, &Gpu::woken>(this));
    auto outstanding = params.find<uint64_t>("max_outstanding", 0);
    fill_memories(size, outstanding ? outstanding : SIZE_MAX);

    kernels = registerStatistic<uint64_t>("kernels");
    cycles = registerStatistic<uint64_t>("cycles");
    instructions = registerStatistic<uint64_t>("instructions");
    blocks = registerStatistic<uint64_t>("blocks");
    reads = registerStatistic<uint64_t>("reads");
    writes = registerStatistic<uint64_t>("writes");
    atomics = registerStatistic<uint64_t>("atomics");
    latency = registerStatistic<uint64_t>("latency");
    create(params);
}

Gpu::~Gpu() { lockstep_playback_destroy(playback); }

void Gpu::fill_memories(uint64_t size, uint64_t max_outstanding)
{
    auto *slots = getSubComponentSlotInfo("memory");
    for (int number = 0; slots && number <= slots->getMaxPopulatedSlotNumber(); ++number) {
        auto *handler = new StandardMem::Handler<Gpu, &Gpu::answered, size_t>(this, memories.size());
        auto *interface = slots->create<StandardMem>(number, ComponentInfo::SHARE_NONE, picosecond, handler);
        if (!interface)
            output.fatal(CALL_INFO, 1, "%s: `memory` %d is none\n", getName().c_str(), number);
        memories.push_back(std::make_unique<MemorySide>(interface, size, max_outstanding));
    }
}

void Gpu::create(SST::Params &params)
{
    auto name = params.find<std::string>("gpu", "h200");
    std::vector<std::string> changes;
    params.find_array("settings", changes);
    std::vector<const char *> settings;
    for (const auto &change : changes)
        settings.push_back(change.c_str());
    LockstepOptions options = {};
    options.gpu = name.c_str();
    options.settings = settings.data();
    options.settings_count = settings.size();
    options.threads = std::max(1u, params.find<uint32_t>("sm_groups", 1));
    char reason[2000];
    auto status = lockstep_playback_create(&options, memories.empty() ? nullptr : told_request, told_kernel, this,
                                           &playback, reason, sizeof reason);
    if (status != LOCKSTEP_STATUS_OK)
        output.fatal(CALL_INFO, 1, "%s: %s\n", getName().c_str(), reason);
    progress.wants_entry = 1;
}

void Gpu::init(unsigned phase)
{
    for (auto &memory : memories)
        memory->init(phase);
}

void Gpu::setup()
{
    for (auto &memory : memories)
        memory->setup();
}

uint64_t Gpu::now() const { return getCurrentSimTime(picosecond) * PICOSECOND; }

void Gpu::check(LockstepStatus status)
{
    if (status != LOCKSTEP_STATUS_OK)
        output.fatal(CALL_INFO, 1, "%s: %s\n", getName().c_str(), lockstep_playback_message(playback));
}

// A call has come. The GPU stood still since the last answer.
void Gpu::called(SST::Event *event)
{
    auto *call = dynamic_cast<EntryEvent *>(event);
    if (!call)
        output.fatal(CALL_INFO, 1, "%s: what came from the host is no entry of a record\n", getName().c_str());
    shift = now() - std::min(now(), progress.host);
    check(lockstep_playback_enter(playback, call->entry.data(), call->entry.size()));
    delete call;
    progress.wants_entry = 0;
    advance();
}

// Lets the GPU run as far as SST's time allows, and answers the call if it is done.
void Gpu::advance()
{
    check_silence();
    uint64_t reached = std::max(now() - shift, progress.now);
    // With memory outside, no further than the end of an epoch: what leaves in it may be answered in the next.
    uint64_t until = memories.empty() ? reached + quantum : reached + 1;
    check(lockstep_playback_advance(playback, until, &progress));
    if (progress.is_over) {
        // It fails, and says why.
        check(lockstep_playback_finish(playback));
        output.fatal(CALL_INFO, 1, "%s: the run ended by itself\n", getName().c_str());
    }
    uint64_t boundary = shift + progress.now;
    if (!told.empty() || !progress.wants_entry)
        self->send(delay_until(boundary), new WakeEvent());
    for (const auto &request : told)
        leaving.emplace_back(boundary, request);
    told.clear();
    if (progress.wants_entry)
        host->send(delay_until(shift + progress.host), new AnswerEvent());
}

// For a link of SST: none if the time has passed.
uint64_t Gpu::delay_until(uint64_t time) const { return picoseconds(std::max(time, now()) - now()); }

// Without an answer the GPU would wait from epoch to epoch for ever.
void Gpu::check_silence()
{
    for (const auto &memory : memories) {
        if (memory->waiting() > 0 && now() - memory->silent_since() > memory_timeout)
            output.fatal(CALL_INFO, 1, "%s: `memory` has answered none of %zu requests for `memory_timeout`\n",
                         getName().c_str(), memory->waiting());
    }
}

void Gpu::woken(SST::Event *event)
{
    delete event;
    send_due();
    // Another may have been sent for before the last call came; the later one goes on.
    if (!progress.wants_entry && now() >= shift + progress.now)
        advance();
}

void Gpu::send_due()
{
    for (; !leaving.empty() && leaving.front().first <= now(); leaving.pop_front()) {
        const auto &request = leaving.front().second;
        switch (request.access) {
        case LOCKSTEP_ACCESS_READ:
            reads->addData(1);
            break;
        case LOCKSTEP_ACCESS_WRITE:
            writes->addData(1);
            break;
        case LOCKSTEP_ACCESS_ATOMIC:
            atomics->addData(1);
            break;
        }
        memories[request.slice % memories.size()]->send(request, now());
    }
}

void Gpu::answered(StandardMem::Request *answer, size_t memory)
{
    uint64_t number, sent;
    if (!memories[memory]->answer(answer, now(), &number, &sent))
        return;
    latency->addData((now() - sent) / PICOSECOND);
    // While the GPU stands still, a request is complete where it stands.
    uint64_t time = progress.wants_entry ? progress.now : now() - shift;
    check(lockstep_playback_complete(playback, number, time));
}

void Gpu::told_request(void *self, const LockstepMemoryRequest *request)
{
    static_cast<Gpu *>(self)->told.push_back(*request);
}

uint64_t Gpu::counter(uint32_t launch, const char *name)
{
    uint64_t value = 0;
    check(lockstep_playback_counter(playback, launch, name, &value));
    return value;
}

void Gpu::told_kernel(void *self, uint32_t launch)
{
    auto *gpu = static_cast<Gpu *>(self);
    uint64_t cycles = gpu->counter(launch, "cycles");
    uint64_t instructions = gpu->counter(launch, "inst_executed");
    gpu->kernels->addData(1);
    gpu->cycles->addData(cycles);
    gpu->instructions->addData(instructions);
    gpu->blocks->addData(gpu->counter(launch, "blocks_completed"));
    ++gpu->all_kernels;
    gpu->all_cycles += cycles;
    char name[4096] = "?";
    (void)lockstep_playback_kernel(gpu->playback, launch, name, sizeof name);
    gpu->output.verbose(CALL_INFO, 1, 0, "%s: launch %u, %s, %" PRIu64 " cycles, %" PRIu64 " warp instructions\n",
                        gpu->getName().c_str(), launch, name, cycles, instructions);
}

void Gpu::finish()
{
    // Fails where the program read other values when its calls were recorded.
    check(lockstep_playback_finish(playback));
    char digest[65] = "";
    check(lockstep_playback_digest(playback, digest, sizeof digest));
    output.output("%s: %" PRIu64 " kernels, %" PRIu64 " cycles, values as recorded, digest %s\n", getName().c_str(),
                  all_kernels, all_cycles, digest);
    if (!statistics_file.empty())
        write_statistics();
}

void Gpu::write_statistics()
{
    FILE *file = std::fopen(statistics_file.c_str(), "w");
    if (!file)
        output.fatal(CALL_INFO, 1, "%s: %s cannot be written\n", getName().c_str(), statistics_file.c_str());
    std::fprintf(file, "component,statistic,value,unit\n");
    auto write = [](void *file, const char *component, const char *name, const char *unit, uint64_t value) {
        std::fprintf(static_cast<FILE *>(file), "%s,%s,%" PRIu64 ",%s\n", component, name, value, unit);
    };
    LockstepStatus status = lockstep_playback_statistics(playback, write, file);
    bool written = !std::ferror(file);
    written &= std::fclose(file) == 0;
    check(status);
    if (!written)
        output.fatal(CALL_INFO, 1, "%s: %s could not be written whole\n", getName().c_str(), statistics_file.c_str());
}

} // namespace SST::Lockstep
