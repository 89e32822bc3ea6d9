/* Asks NVML as monitoring programs do: by dlopen, with structures of its own laid out by offset,
 * behind which every byte must stay as it was. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *library;

/* All functions take integers and pointers, and registers hold either. */
typedef int (*Function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static Function find(const char *name)
{
    Function function = (Function)dlsym(library, name);
    if (!function) {
        printf("%s is missing\n", name);
        exit(1);
    }
    return function;
}

#define CALL5(name, a, b, c, d, e) \
    find(name)((uintptr_t)(a), (uintptr_t)(b), (uintptr_t)(c), (uintptr_t)(d), (uintptr_t)(e))
#define CALL(name, a, b, c, d) CALL5(name, a, b, c, d, 0)

enum { ROOM = 256, GUARD = 0xaa };
static unsigned char buffer[ROOM];

static void fresh(void) { memset(buffer, GUARD, ROOM); }

static uint32_t word(size_t offset)
{
    uint32_t value;
    memcpy(&value, buffer + offset, 4);
    return value;
}

static uint64_t wide(size_t offset)
{
    uint64_t value;
    memcpy(&value, buffer + offset, 8);
    return value;
}

static void set_word(size_t offset, uint32_t value) { memcpy(buffer + offset, &value, 4); }

/* Says how many bytes were written at most, which must be the size of the structure. */
static void size_is(const char *name, size_t size)
{
    size_t end = ROOM;
    while (end > 0 && buffer[end - 1] == GUARD)
        end--;
    printf("%s has %s bytes\n", name, end <= size && end + 8 > size ? "its" : "OTHER");
    if (end > size || end + 8 <= size)
        printf("  %zu instead of %zu\n", end, size);
}

static void before_initialisation(void)
{
    unsigned count = 7;
    printf("count before: %d %u\n", CALL("nvmlDeviceGetCount_v2", &count, 0, 0, 0), count);
    printf("power before: %d\n", CALL("nvmlDeviceGetPowerUsage", 1, &count, 0, 0));
    printf("shutdown before: %d\n", CALL("nvmlShutdown", 0, 0, 0, 0));
    const char *(*text)(int) = (const char *(*)(int))dlsym(library, "nvmlErrorString");
    printf("errors: %s, %s, %s, %s\n", text(0), text(1), text(7), text(12345));
}

static void system_and_identity(uintptr_t device)
{
    int version = 0, major = 0, minor = 0;
    unsigned number = 9, architecture = 0;
    char text[96] = "";
    CALL("nvmlSystemGetCudaDriverVersion_v2", &version, 0, 0, 0);
    CALL("nvmlDeviceGetCudaComputeCapability", device, &major, &minor, 0);
    CALL("nvmlDeviceGetArchitecture", device, &architecture, 0, 0);
    CALL("nvmlDeviceGetIndex", device, &number, 0, 0);
    printf("CUDA %d, capability %d.%d, architecture %u, index %u\n", version, major, minor, architecture, number);
    CALL("nvmlSystemGetDriverVersion", text, 80, 0, 0);
    printf("driver %s\n", text);
    CALL("nvmlSystemGetNVMLVersion", text, 80, 0, 0);
    printf("nvml %s\n", text);
    CALL("nvmlDeviceGetName", device, text, 96, 0);
    printf("name %s\n", text);
    printf("name in 4 bytes: %d\n", CALL("nvmlDeviceGetName", device, text, 4, 0));
    printf("name nowhere: %d\n", CALL("nvmlDeviceGetName", device, 0, 96, 0));
    CALL("nvmlDeviceGetUUID", device, text, 96, 0);
    printf("uuid %s\n", text);
    uintptr_t again = 0;
    int found = CALL("nvmlDeviceGetHandleByUUID", text, &again, 0, 0);
    printf("by uuid: %d %s\n", found, again == device ? "same" : "OTHER");
    printf("by no uuid: %d\n", CALL("nvmlDeviceGetHandleByUUID", "GPU-0", &again, 0, 0));
    fresh();
    set_word(0, 1 << 24 | 52);
    set_word(4, 1);
    strcpy((char *)buffer + 8, text);
    again = 0;
    found = CALL("nvmlDeviceGetHandleByUUIDV", buffer, &again, 0, 0);
    printf("by structure: %d %s\n", found, again == device ? "same" : "OTHER");
}

static void bus(uintptr_t device)
{
    uintptr_t again = 0;
    fresh();
    CALL("nvmlDeviceGetPciInfo_v3", device, buffer, 0, 0);
    size_is("nvmlPciInfo_t", 68);
    printf("bus %s = %s: %u %#x %u, %#x %#x\n", buffer, buffer + 36, word(16), word(20), word(24), word(28), word(32));
    int found = CALL("nvmlDeviceGetHandleByPciBusId_v2", buffer + 36, &again, 0, 0);
    printf("by bus: %d %s\n", found, again == device ? "same" : "OTHER");
    printf("by wrong bus: %d %d\n", CALL("nvmlDeviceGetHandleByPciBusId_v2", "0:99:0", &again, 0, 0),
           CALL("nvmlDeviceGetHandleByPciBusId_v2", "nonsense", &again, 0, 0));
    fresh();
    CALL("nvmlDeviceGetPciInfo_v2", device, buffer, 0, 0);
    size_is("second nvmlPciInfo_t", 36);
    fresh();
    CALL("nvmlDeviceGetPciInfo", device, buffer, 0, 0);
    size_is("first nvmlPciInfo_t", 32);
    fresh();
    set_word(0, 1 << 24 | 64);
    printf("extended: %d\n", CALL("nvmlDeviceGetPciInfoExt", device, buffer, 0, 0));
    size_is("nvmlPciInfoExt_v1_t", 64);
    printf("extended %u %#x %u, class %u %u, %s\n", word(4), word(8), word(12), word(24), word(28), buffer + 32);
}

static void memory(uintptr_t device)
{
    const double gib = 1 << 30;
    fresh();
    printf("memory: %d\n", CALL("nvmlDeviceGetMemoryInfo", device, buffer, 0, 0));
    size_is("nvmlMemory_t", 24);
    printf("total %.0f free %.0f used %.0f GiB\n", wide(0) / gib, wide(8) / gib, wide(16) / gib);
    fresh();
    set_word(0, 2 << 24 | 40);
    printf("memory 2: %d\n", CALL("nvmlDeviceGetMemoryInfo_v2", device, buffer, 0, 0));
    size_is("nvmlMemory_v2_t", 40);
    printf("total %.0f reserved %.0f free %.0f used %.0f GiB, version %#x\n", wide(8) / gib, wide(16) / gib,
           wide(24) / gib, wide(32) / gib, word(0));
    fresh();
    set_word(0, 3 << 24 | 40);
    printf("memory 3: %d\n", CALL("nvmlDeviceGetMemoryInfo_v2", device, buffer, 0, 0));
    unsigned width = 0;
    CALL("nvmlDeviceGetMemoryBusWidth", device, &width, 0, 0);
    printf("bus width %u\n", width);
}

static void processes(uintptr_t device)
{
    unsigned count = 0;
    printf("processes, no room: %d", CALL("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, 0, 0));
    printf(" %u\n", count);
    fresh();
    printf("processes: %d", CALL("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, buffer, 0));
    printf(" %u: %u has %lu in %#x %#x, %u has %lu\n", count, word(0), wide(8), word(16), word(20), word(24), wide(32));
    size_is("two nvmlProcessInfo_t", 48);
    count = 2;
    fresh();
    CALL("nvmlDeviceGetComputeRunningProcesses", device, &count, buffer, 0);
    size_is("two nvmlProcessInfo_v1_t", 32);
    count = 5;
    printf("drawing: %d", CALL("nvmlDeviceGetGraphicsRunningProcesses_v3", device, &count, buffer, 0));
    printf(" %u\n", count);
    fresh();
    unsigned char list[24] = {0};
    const unsigned version = 1 << 24 | 24;
    const void *rows = buffer;
    memcpy(list, &version, 4);
    list[8] = 2;
    memcpy(list + 16, &rows, 8);
    printf("details: %d", CALL("nvmlDeviceGetRunningProcessDetailList", device, list, 0, 0));
    printf(" %u: %u has %lu and %lu protected\n", list[8], word(0), wide(8), wide(24));
    size_is("two nvmlProcessDetail_v1_t", 64);
}

static void clocks_and_modes(uintptr_t device)
{
    unsigned a = 9, b = 9, c = 9;
    CALL("nvmlDeviceGetClockInfo", device, 1, &a, 0);
    CALL("nvmlDeviceGetMaxClockInfo", device, 2, &b, 0);
    CALL("nvmlDeviceGetClock", device, 0, 0, &c);
    printf("clocks %u %u %u\n", a, b, c);
    printf("video clock %d, no clock %d\n", CALL("nvmlDeviceGetClockInfo", device, 3, &a, 0),
           CALL("nvmlDeviceGetClockInfo", device, 77, &a, 0));
    CALL("nvmlDeviceGetEccMode", device, &a, &b, 0);
    CALL("nvmlDeviceGetMigMode", device, &b, &c, 0);
    printf("ECC %u, instances %u %u\n", a, b, c);
    uint64_t errors = 9;
    int outcome = CALL("nvmlDeviceGetTotalEccErrors", device, 1, 1, &errors);
    printf("errors %d %lu, of no kind %d\n", outcome, errors,
           CALL("nvmlDeviceGetTotalEccErrors", device, 2, 1, &errors));
}

static void links(uintptr_t device)
{
    for (unsigned link = 0; link < 3; link++) {
        unsigned active = 9, version = 9, kind = 9, able[7];
        printf("link %u: state %d", link, CALL("nvmlDeviceGetNvLinkState", device, link, &active, 0));
        printf(" %u, version %d", active, CALL("nvmlDeviceGetNvLinkVersion", device, link, &version, 0));
        printf(" %u, leads %d", version, CALL("nvmlDeviceGetNvLinkRemoteDeviceType", device, link, &kind, 0));
        printf(" to %u, able", kind);
        for (unsigned i = 0; i < 7; i++) {
            able[i] = 9;
            printf(" %d", CALL("nvmlDeviceGetNvLinkCapability", device, link, i, &able[i]));
            printf(":%u", able[i]);
        }
        fresh();
        printf(", at %d", CALL("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, buffer, 0));
        printf(" %s\n", link < 2 ? (char *)buffer + 36 : "no place");
        if (link == 0)
            size_is("nvmlPciInfo_t of a switch", 68);
        fresh();
        CALL("nvmlDeviceGetNvLinkRemotePciInfo", device, link, buffer, 0);
        if (link == 0)
            size_is("older nvmlPciInfo_t of a switch", 36);
    }
    fresh();
    set_word(0, 2 << 24 | 36);
    printf("fabric: %d", CALL("nvmlDeviceGetGpuFabricInfoV", device, buffer, 0, 0));
    printf(" state %u\n", buffer[28]);
    size_is("nvmlGpuFabricInfo_v2_t", 36);
    fresh();
    set_word(0, 3 << 24 | 40);
    printf("fabric 3: %d\n", CALL("nvmlDeviceGetGpuFabricInfoV", device, buffer, 0, 0));
    size_is("nvmlGpuFabricInfo_v3_t", 40);
    fresh();
    /* Links, to switches, speed of 0, 1, 2 and all; energy. */
    static const unsigned fields[] = {91, 147, 84, 85, 86, 90, 83};
    for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) {
        fresh();
        set_word(0, fields[i]);
        int outcome = CALL("nvmlDeviceGetFieldValues", device, 1, buffer, 0);
        printf("field %u: %d %u", fields[i], outcome, word(28));
        printf(word(28) ? "\n" : " = %u\n", word(32));
    }
    /* Speed, state and version of the link that is beside the number. */
    for (unsigned link = 0; link < 3; link += 2) {
        fresh();
        for (unsigned i = 0; i < 3; i++) {
            set_word(40 * i, 164 + i);
            set_word(40 * i + 4, link);
        }
        printf("fields of link %u: %d", link, CALL("nvmlDeviceGetFieldValues", device, 3, buffer, 0));
        for (unsigned i = 0; i < 3; i++)
            printf(", %u %u", word(40 * i + 28), word(40 * i + 28) ? 0 : word(40 * i + 32));
        printf("\n");
    }
    printf("fields nowhere: %d, fewer than none: %d\n", CALL("nvmlDeviceGetFieldValues", device, 1, 0, 0),
           CALL("nvmlDeviceGetFieldValues", device, -1, buffer, 0));
    unsigned level = 9, count = 3;
    uintptr_t others[3];
    CALL("nvmlDeviceGetTopologyCommonAncestor", device, device, &level, 0);
    CALL("nvmlDeviceGetTopologyNearestGpus", device, 50, &count, others);
    printf("level %u, others %u, ", level, count);
    unsigned reads = 9, linked = 9;
    printf("with itself %d", CALL("nvmlDeviceGetP2PStatus", device, device, 0, &reads));
    printf(" %d", CALL("nvmlDeviceGetP2PStatus", device, device, 2, &linked));
    printf(": %u %u, of no kind %d\n", reads, linked, CALL("nvmlDeviceGetP2PStatus", device, device, 5, &level));
}

static void what_no_model_knows(uintptr_t device)
{
    unsigned value = 12345;
    printf("power %d", CALL("nvmlDeviceGetPowerUsage", device, &value, 0, 0));
    printf(", temperature %d", CALL("nvmlDeviceGetTemperature", device, 0, &value, 0));
    printf(", fan %d", CALL("nvmlDeviceGetFanSpeed", device, &value, 0, 0));
    printf(", utilisation %d: %u\n", CALL("nvmlDeviceGetUtilizationRates", device, &value, 0, 0), value);
}

static void events(uintptr_t device)
{
    uintptr_t set = 0;
    uint64_t kinds = 9;
    printf("set: %d", CALL("nvmlEventSetCreate", &set, 0, 0, 0));
    CALL("nvmlDeviceGetSupportedEventTypes", device, &kinds, 0, 0);
    printf(", supported %lu, register %d", kinds, CALL("nvmlDeviceRegisterEvents", device, 8, set, 0));
    printf(", wait %d", CALL("nvmlEventSetWait_v2", set, buffer, 1, 0));
    printf(", free %d", CALL("nvmlEventSetFree", set, 0, 0, 0));
    printf(", again %d\n", CALL("nvmlEventSetFree", set, 0, 0, 0));
}

static void faults(uintptr_t device)
{
    unsigned value = 0;
    printf("index 1: %d\n", CALL("nvmlDeviceGetHandleByIndex_v2", 1, &device, 0, 0));
    printf("bad handles: %d %d %d\n", CALL("nvmlDeviceGetMemoryInfo", 0, buffer, 0, 0),
           CALL("nvmlDeviceGetName", device + 1, buffer, ROOM, 0), CALL("nvmlDeviceGetIndex", &value, &value, 0, 0));
    printf("null: %d %d\n", CALL("nvmlDeviceGetMemoryInfo", device, 0, 0, 0),
           CALL("nvmlDeviceGetCount_v2", 0, 0, 0, 0));
}

/* A child may go on looking, beside its parent. */
static void child(uintptr_t device)
{
    fflush(stdout);
    pid_t made = fork();
    if (made == 0) {
        fresh();
        int outcome = CALL("nvmlDeviceGetMemoryInfo", device, buffer, 0, 0);
        printf("in a child: %d %lu\n", outcome, wide(0) >> 30);
        fflush(stdout);
        _exit(0);
    }
    waitpid(made, NULL, 0);
    fresh();
    int outcome = CALL("nvmlDeviceGetMemoryInfo", device, buffer, 0, 0);
    printf("in the parent: %d %lu\n", outcome, wide(0) >> 30);
}

int main(void)
{
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    before_initialisation();
    printf("init: %d", CALL("nvmlInit_v2", 0, 0, 0, 0));
    printf(" %d %d\n", CALL("nvmlInit", 0, 0, 0, 0), CALL("nvmlInitWithFlags", 8, 0, 0, 0));
    unsigned count = 0;
    CALL("nvmlDeviceGetCount_v2", &count, 0, 0, 0);
    uintptr_t device = 0;
    printf("devices: %u, first: %d\n", count, CALL("nvmlDeviceGetHandleByIndex_v2", 0, &device, 0, 0));
    system_and_identity(device);
    bus(device);
    memory(device);
    processes(device);
    clocks_and_modes(device);
    links(device);
    what_no_model_knows(device);
    events(device);
    faults(device);
    child(device);
    printf("shutdown: %d", CALL("nvmlShutdown", 0, 0, 0, 0));
    printf(", still there: %d", CALL("nvmlDeviceGetCount_v2", &count, 0, 0, 0));
    printf(", shutdown: %d", CALL("nvmlShutdown", 0, 0, 0, 0));
    printf(", no longer: %d\n", CALL("nvmlDeviceGetCount_v2", &count, 0, 0, 0));
    return 0;
}
