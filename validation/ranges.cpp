// Counts what each kernel of a process does, one pass a run, without a profiler's start for every kernel.
//
//   LD_PRELOAD=libranges.so RANGES_METRICS=a,b,c RANGES_OUT=FILE [RANGES_COLD=1] [RANGES_OWN=1] PROGRAM...
//   ranges_plan CHIP METRIC...      prints groups of metrics that take one pass each
//
//   g++ -std=c++17 -O2 -shared -fPIC -I$CUDA/include -I$CUDA/extras/CUPTI/include ranges.cpp -o libranges.so -lcupti -lcuda
//   g++ -std=c++17 -O2 -DPLAN_MAIN ... -o ranges_plan
//
// The range profiler of CUPTI makes every kernel a range of its own. The counters are set up once, so a launch costs a
// fraction of what ncu takes for it; in exchange the metrics must fit one pass (the planner says which do).
// With RANGES_COLD, 256 MiB are read before every launch, which leaves nothing of the program in L2; L1 starts empty at
// every launch by itself. Output: for each range one line, its number, the kernel's name and the values. A line whose
// kernel is `flush` is ours.
//
// With RANGES_OWN, we begin and end each range ourselves, around a launch and the wait for it. That is cheaper, and the
// flush is no range; but a range then holds the time before and after the kernel, so it is for counts and for ratios of
// counts, not for cycles.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#define STRUCT(type, name) \
    type##_Params name = {}; \
    name.structSize = type##_Params_STRUCT_SIZE

static void check(CUptiResult result, const char* doing) {
    if (result == CUPTI_SUCCESS) return;
    const char* word = "?";
    cuptiGetResultString(result, &word);
    std::fprintf(stderr, "ranges: %s: %s\n", doing, word);
    _exit(3);
}

// The metrics' configuration for a chip, and how many passes it takes.
struct Plan {
    CUpti_Profiler_Host_Object* host = nullptr;
    std::vector<uint8_t> image;
    size_t passes = 0;

    bool make(const char* chip, std::vector<const char*>& metrics, const uint8_t* availability) {
        STRUCT(CUpti_Profiler_Host_Initialize, begin);
        begin.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
        begin.pChipName = chip;
        begin.pCounterAvailabilityImage = availability;
        check(cuptiProfilerHostInitialize(&begin), "preparing metrics");
        host = begin.pHostObject;
        STRUCT(CUpti_Profiler_Host_ConfigAddMetrics, add);
        add.pHostObject = host;
        add.ppMetricNames = metrics.data();
        add.numMetrics = metrics.size();
        if (cuptiProfilerHostConfigAddMetrics(&add) != CUPTI_SUCCESS) return false;
        STRUCT(CUpti_Profiler_Host_GetConfigImageSize, size);
        size.pHostObject = host;
        check(cuptiProfilerHostGetConfigImageSize(&size), "sizing the configuration");
        image.resize(size.configImageSize);
        STRUCT(CUpti_Profiler_Host_GetConfigImage, get);
        get.pHostObject = host;
        get.configImageSize = image.size();
        get.pConfigImage = image.data();
        check(cuptiProfilerHostGetConfigImage(&get), "making the configuration");
        STRUCT(CUpti_Profiler_Host_GetNumOfPasses, count);
        count.configImageSize = image.size();
        count.pConfigImage = image.data();
        check(cuptiProfilerHostGetNumOfPasses(&count), "counting passes");
        passes = count.numOfPasses;
        return true;
    }
};

static void initialize_profiler() {
    STRUCT(CUpti_Profiler_Initialize, initialize);
    check(cuptiProfilerInitialize(&initialize), "starting the profiler");
}

#ifdef PLAN_MAIN

// Puts each metric into the first group that still takes one pass with it; prints a group a line.
int main(int argc, char** argv) {
    if (argc < 3) return std::fprintf(stderr, "usage: ranges_plan CHIP METRIC...\n"), 2;
    cuInit(0);
    initialize_profiler();
    std::vector<std::vector<const char*>> groups;
    for (int index = 2; index < argc; index++) {
        bool placed = false;
        for (size_t group = 0; group <= groups.size() && !placed; group++) {
            std::vector<const char*> with = group < groups.size() ? groups[group] : std::vector<const char*>{};
            with.push_back(argv[index]);
            Plan plan;
            if (!plan.make(argv[1], with, nullptr)) {
                std::fprintf(stderr, "ranges: no metric %s on %s\n", argv[index], argv[1]);
                break;
            }
            if (plan.passes > 1 && with.size() == 1) std::fprintf(stderr, "ranges: %s alone needs %zu passes\n", argv[index], plan.passes);
            if (plan.passes > 1) {
                if (with.size() == 1) break;
                continue;
            }
            if (group == groups.size()) groups.emplace_back();
            groups[group] = with;
            placed = true;
        }
    }
    for (const auto& group : groups) {
        for (size_t index = 0; index < group.size(); index++) std::printf("%s%s", index ? "," : "", group[index]);
        std::printf("\n");
    }
}

#else

namespace {

// Few: clearing and decoding counters takes time for every range that there might be.
constexpr size_t MOST_RANGES = 512;
constexpr size_t FLUSHED = 256u << 20;
// void flush(const uint4* from, uint4* never, size_t count): reads everything.
const char* FLUSH_PTX = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry flush(.param .u64 from, .param .u64 never, .param .u64 count)
{
    .reg .b64 %f, %n, %c, %i, %s, %a; .reg .b32 %t, %b, %d, %g, %x, %y, %z, %w, %o; .reg .pred %p, %q;
    ld.param.u64 %f, [from]; ld.param.u64 %n, [never]; ld.param.u64 %c, [count];
    mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %d, %ntid.x; mov.u32 %g, %nctaid.x;
    mad.lo.u32 %t, %b, %d, %t; mul.lo.u32 %d, %d, %g; cvt.u64.u32 %i, %t; cvt.u64.u32 %s, %d; mov.u32 %o, 0;
AGAIN:
    setp.ge.u64 %p, %i, %c; @%p bra DONE;
    shl.b64 %a, %i, 4; add.u64 %a, %a, %f; ld.global.v4.u32 {%x, %y, %z, %w}, [%a];
    or.b32 %o, %o, %x; or.b32 %o, %o, %y; or.b32 %o, %o, %z; or.b32 %o, %o, %w;
    add.u64 %i, %i, %s; bra AGAIN;
DONE:
    setp.eq.u32 %q, %o, 12345; @!%q bra LAST; st.global.u32 [%n], %o;
LAST:
    ret;
})";

std::mutex lock;
thread_local bool inside = false;
std::vector<std::string> names;
std::vector<const char*> metrics;
Plan* plan = nullptr;
CUpti_RangeProfiler_Object* profiler = nullptr;
CUcontext profiled = nullptr;
std::vector<uint8_t> counters;
std::vector<std::string> pending;
FILE* out = nullptr;
bool cold = false;
bool own = false;
CUfunction flush_kernel = nullptr;
CUdeviceptr flushed = 0;
size_t written = 0;

void start() {
    STRUCT(CUpti_RangeProfiler_CounterDataImage_Initialize, clear);
    clear.pRangeProfilerObject = profiler;
    clear.counterDataSize = counters.size();
    clear.pCounterData = counters.data();
    check(cuptiRangeProfilerCounterDataImageInitialize(&clear), "clearing counters");
    STRUCT(CUpti_RangeProfiler_SetConfig, set);
    set.pRangeProfilerObject = profiler;
    set.configSize = plan->image.size();
    set.pConfig = plan->image.data();
    set.counterDataImageSize = counters.size();
    set.pCounterDataImage = counters.data();
    set.range = own ? CUPTI_UserRange : CUPTI_AutoRange;
    set.replayMode = CUPTI_UserReplay;
    set.maxRangesPerPass = MOST_RANGES;
    set.numNestingLevels = 1;
    set.minNestingLevel = 1;
    check(cuptiRangeProfilerSetConfig(&set), "configuring the range profiler");
    STRUCT(CUpti_RangeProfiler_Start, begin);
    begin.pRangeProfilerObject = profiler;
    check(cuptiRangeProfilerStart(&begin), "starting the range profiler");
}

void collect() {
    STRUCT(CUpti_RangeProfiler_Stop, stop);
    stop.pRangeProfilerObject = profiler;
    check(cuptiRangeProfilerStop(&stop), "stopping the range profiler");
    STRUCT(CUpti_RangeProfiler_DecodeData, decode);
    decode.pRangeProfilerObject = profiler;
    check(cuptiRangeProfilerDecodeData(&decode), "decoding ranges");
    STRUCT(CUpti_RangeProfiler_GetCounterDataInfo, info);
    info.pCounterDataImage = counters.data();
    info.counterDataImageSize = counters.size();
    check(cuptiRangeProfilerGetCounterDataInfo(&info), "counting ranges");
    if (info.numTotalRanges != pending.size() || decode.numOfRangeDropped)
        std::fprintf(stderr, "ranges: %zu launches, %zu ranges, %zu dropped\n", pending.size(), size_t(info.numTotalRanges), size_t(decode.numOfRangeDropped));
    std::vector<double> values(metrics.size());
    std::vector<std::string> lines(pending.size());
    for (size_t range = 0; range < info.numTotalRanges; range++) {
        size_t launch = range;
        if (own) {
            STRUCT(CUpti_RangeProfiler_CounterData_GetRangeInfo, about);
            about.pCounterDataImage = counters.data();
            about.counterDataImageSize = counters.size();
            about.rangeIndex = range;
            about.rangeDelimiter = "/";
            check(cuptiRangeProfilerCounterDataGetRangeInfo(&about), "naming a range");
            launch = std::strtoull(about.rangeName, nullptr, 10);
        }
        if (launch >= lines.size()) lines.resize(launch + 1);
        STRUCT(CUpti_Profiler_Host_EvaluateToGpuValues, evaluate);
        evaluate.pHostObject = plan->host;
        evaluate.pCounterDataImage = counters.data();
        evaluate.counterDataImageSize = counters.size();
        evaluate.rangeIndex = range;
        evaluate.ppMetricNames = metrics.data();
        evaluate.numMetrics = metrics.size();
        evaluate.pMetricValues = values.data();
        check(cuptiProfilerHostEvaluateToGpuValues(&evaluate), "evaluating metrics");
        lines[launch] = launch < pending.size() ? pending[launch] : "?";
        char digits[40];
        for (double value : values) {
            std::snprintf(digits, sizeof digits, "\t%.17g", value);
            lines[launch] += digits;
        }
    }
    for (const std::string& line : lines)
        if (!line.empty()) std::fprintf(out, "%zu\t%s\n", written++, line.c_str());
    std::fflush(out);
    pending.clear();
}

// Counts the kernels of `context` from now on.
void prepare(CUcontext context) {
    if (profiler) {
        collect();
        STRUCT(CUpti_RangeProfiler_Disable, disable);
        disable.pRangeProfilerObject = profiler;
        check(cuptiRangeProfilerDisable(&disable), "leaving a context");
        flush_kernel = nullptr;
    } else {
        initialize_profiler();
        CUdevice device;
        cuCtxGetDevice(&device);
        STRUCT(CUpti_Device_GetChipName, chip);
        chip.deviceIndex = size_t(device);
        check(cuptiDeviceGetChipName(&chip), "naming the chip");
        plan = new Plan;
        if (!plan->make(chip.pChipName, metrics, nullptr)) check(CUPTI_ERROR_INVALID_METRIC_NAME, "choosing metrics");
        if (plan->passes != 1) {
            std::fprintf(stderr, "ranges: these metrics need %zu passes; one is possible\n", plan->passes);
            _exit(3);
        }
    }
    STRUCT(CUpti_RangeProfiler_Enable, enable);
    enable.ctx = context;
    check(cuptiRangeProfilerEnable(&enable), "entering a context");
    profiler = enable.pRangeProfilerObject;
    STRUCT(CUpti_RangeProfiler_GetCounterDataSize, size);
    size.pRangeProfilerObject = profiler;
    size.pMetricNames = metrics.data();
    size.numMetrics = metrics.size();
    size.maxNumOfRanges = MOST_RANGES;
    size.maxNumRangeTreeNodes = MOST_RANGES;
    check(cuptiRangeProfilerGetCounterDataSize(&size), "sizing counters");
    counters.resize(size.counterDataSize);
    if (cold) {
        CUmodule module;
        if (cuModuleLoadData(&module, FLUSH_PTX) || cuModuleGetFunction(&flush_kernel, module, "flush") || cuMemAlloc(&flushed, FLUSHED) ||
            cuMemsetD8(flushed, 0, FLUSHED)) {
            std::fprintf(stderr, "ranges: the flush cannot be prepared\n");
            _exit(3);
        }
    }
    start();
    profiled = context;
}

// A launch begins. With ranges of our own the lock stays ours until it ends.
void launching(CUcontext context, const char* name) {
    if (inside || !context) return;
    lock.lock();
    inside = true;
    if (context != profiled) prepare(context);
    if (pending.size() + 2 >= MOST_RANGES) {
        collect();
        start();
    }
    if (cold || own) cuCtxSynchronize();
    if (cold) {
        CUdeviceptr never = flushed;
        size_t count = FLUSHED / 16;
        void* parameters[] = {&flushed, &never, &count};
        if (cuLaunchKernel(flush_kernel, 264, 1, 1, 1024, 1, 1, 0, nullptr, parameters, nullptr) || cuCtxSynchronize()) {
            std::fprintf(stderr, "ranges: the flush failed\n");
            _exit(3);
        }
        if (!own) pending.push_back("flush");
    }
    if (own) {
        std::string number = std::to_string(pending.size());
        STRUCT(CUpti_RangeProfiler_PushRange, push);
        push.pRangeProfilerObject = profiler;
        push.pRangeName = number.c_str();
        check(cuptiRangeProfilerPushRange(&push), "beginning a range");
    }
    pending.push_back(name ? name : "?");
    inside = false;
    if (!own) lock.unlock();
}

void launched(CUcontext context) {
    if (inside || !context || !own) return;
    inside = true;
    cuCtxSynchronize();
    STRUCT(CUpti_RangeProfiler_PopRange, pop);
    pop.pRangeProfilerObject = profiler;
    check(cuptiRangeProfilerPopRange(&pop), "ending a range");
    inside = false;
    lock.unlock();
}

void CUPTIAPI called(void*, CUpti_CallbackDomain domain, CUpti_CallbackId, const void* data) {
    const auto* about = static_cast<const CUpti_CallbackData*>(data);
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
    if (about->callbackSite == CUPTI_API_ENTER) launching(about->context, about->symbolName);
    else launched(about->context);
}

void finish() {
    std::lock_guard<std::mutex> guard(lock);
    inside = true;
    if (profiler && !pending.empty()) collect();
    if (out) std::fclose(out);
    out = nullptr;
    profiler = nullptr;
}

struct Loaded {
    Loaded() {
        const char* asked = std::getenv("RANGES_METRICS");
        const char* path = std::getenv("RANGES_OUT");
        if (!asked || !path) return;
        cold = std::getenv("RANGES_COLD") != nullptr;
        own = std::getenv("RANGES_OWN") != nullptr;
        std::stringstream words(asked);
        for (std::string word; std::getline(words, word, ',');) names.push_back(word);
        for (const std::string& name : names) metrics.push_back(name.c_str());
        out = std::fopen(path, "w");
        if (!out) return;
        CUpti_SubscriberHandle subscriber;
        check(cuptiSubscribe(&subscriber, called, nullptr), "subscribing");
        for (CUpti_CallbackId id : {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
                                    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz})
            check(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id), "listening");
        std::atexit(finish);
    }
} loaded;

}  // namespace

#endif
