// Notes every page-fault group and every migration that a program causes on a real GPU, through
// CUPTI. CUDA loads it by itself:
//
//   g++ -O2 -shared -fPIC -I$CUDA/include -o libuvm_log.so uvm_log.cpp -L$CUPTI -lcupti
//   UVM_LOG=log.csv CUDA_INJECTION64_PATH=./libuvm_log.so ./program

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cupti.h>

static FILE *out;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 1 << 22;
    *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, *size));
    *most = 0;
}

static void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
    CUpti_Activity *record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind != CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER)
            continue;
        auto *counter = reinterpret_cast<CUpti_ActivityUnifiedMemoryCounter3 *>(record);
        const char *kind = "other";
        switch (counter->counterKind) {
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD: kind = "to_device"; break;
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH: kind = "to_host"; break;
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT: kind = "faults"; break;
        default: break;
        }
        std::fprintf(out, "%s,%llu,%llu,%llu,%llu,%u\n", kind, (unsigned long long)counter->start,
                     (unsigned long long)counter->end, (unsigned long long)counter->address,
                     (unsigned long long)counter->value, counter->flags);
    }
    std::free(buffer);
}

static void finish() {
    cuptiActivityFlushAll(1);
    std::fflush(out);
}

static void CUPTIAPI on_context(void *, CUpti_CallbackDomain, CUpti_CallbackId id, const void *) {
    static bool begun = false;
    if (id != CUPTI_CBID_RESOURCE_CONTEXT_CREATED || begun)
        return;
    begun = true;
    CUpti_ActivityUnifiedMemoryCounterConfig counters[3] = {};
    CUpti_ActivityUnifiedMemoryCounterKind kinds[3] = {
        CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
        CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
        CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT};
    for (int i = 0; i < 3; i++) {
        counters[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
        counters[i].kind = kinds[i];
        counters[i].deviceId = 0;
        counters[i].enable = 1;
    }
    CUptiResult configured = cuptiActivityConfigureUnifiedMemoryCounter(counters, 3);
    CUptiResult enabled = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
    if (configured != CUPTI_SUCCESS || enabled != CUPTI_SUCCESS)
        std::fprintf(stderr, "uvm_log: CUPTI answered %d, %d\n", configured, enabled);
}

extern "C" int InitializeInjection() {
    const char *name = std::getenv("UVM_LOG");
    out = name ? std::fopen(name, "w") : nullptr;
    if (!out)
        return 0;
    std::fprintf(out, "what,start_ns,end_ns,address,value,flags\n");
    cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    CUpti_SubscriberHandle subscriber;
    cuptiSubscribe(&subscriber, on_context, nullptr);
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
    std::atexit(finish);
    return 1;
}
