// What happens around kernels: copies, fills, launches, graphs, streams, events, barriers, managed memory, and what calls
// cost the host.
//
//   scenarios [REPETITIONS [TEXT]]    only scenarios in whose name TEXT is found
//
// Prints `scenario,parameter,clock,median_us,low_us,high_us,repetitions`. `device` is the time between two events of the
// legacy stream, `host` that of a steady clock of the host around the calls. Each scenario runs once before it is timed,
// except those whose name begins with `first`.
#include "scenarios.cuh"

// ---- memory that all share ----

static char *memory, *other, *pinned, *back;
static std::vector<char> pageable(16 * MIB, 1);
static cudaStream_t streams[STREAMS];
static cudaEvent_t fork_event, join_events[STREAMS];

// `step(i)` in stream i, between a fork from the legacy stream and a join.
static void in_streams(int count, const std::function<void(int)>& step) {
    CHECK(cudaEventRecord(fork_event));
    for (int i = 0; i < count; i++) {
        CHECK(cudaStreamWaitEvent(streams[i], fork_event));
        step(i);
        CHECK(cudaEventRecord(join_events[i], streams[i]));
    }
    for (int i = 0; i < count; i++) CHECK(cudaStreamWaitEvent(0, join_events[i]));
}

static float* words(size_t offset = 0) { return reinterpret_cast<float*>(memory + offset); }

static void copies() {
    for (size_t bytes : {4 * KIB, 64 * KIB, 1 * MIB, 16 * MIB}) {
        std::string size = text("bytes=%zu", bytes);
        device("copy_up_pinned", size, [=] { CHECK(cudaMemcpyAsync(memory, pinned, bytes, cudaMemcpyHostToDevice)); });
        device("copy_down_pinned", size, [=] { CHECK(cudaMemcpyAsync(back, memory, bytes, cudaMemcpyDeviceToHost)); });
        device("copy_up_pageable", size, [=] { CHECK(cudaMemcpy(memory, pageable.data(), bytes, cudaMemcpyHostToDevice)); });
        device("copy_down_pageable", size, [=] { CHECK(cudaMemcpy(pageable.data(), memory, bytes, cudaMemcpyDeviceToHost)); });
    }
    for (size_t bytes : {4 * KIB, 64 * KIB, 1 * MIB, 16 * MIB, 64 * MIB}) {
        std::string size = text("bytes=%zu", bytes);
        device("copy_within", size, [=] { CHECK(cudaMemcpyAsync(other, memory, bytes, cudaMemcpyDeviceToDevice)); });
        device("fill", size, [=] { CHECK(cudaMemsetAsync(memory, 0, bytes)); });
    }
    device("copy_up_rows", "rows=512 bytes=2048 pitch=4096", [] { CHECK(cudaMemcpy2DAsync(memory, 4096, pinned, 4096, 2048, 512, cudaMemcpyHostToDevice)); });
    device("copy_down_rows", "rows=512 bytes=2048 pitch=4096", [] { CHECK(cudaMemcpy2DAsync(back, 4096, memory, 4096, 2048, 512, cudaMemcpyDeviceToHost)); });
    device("copy_within_rows", "rows=512 bytes=2048 pitch=4096", [] { CHECK(cudaMemcpy2DAsync(other, 4096, memory, 4096, 2048, 512, cudaMemcpyDeviceToDevice)); });
    device("fill_rows", "rows=512 bytes=2048 pitch=4096", [] { CHECK(cudaMemset2DAsync(memory, 4096, 1, 2048, 512)); });
    device("copies_up_small", "bytes=4096 copies=50", [] {
        for (int i = 0; i < 50; i++) CHECK(cudaMemcpyAsync(memory + i * 4096, pinned + i * 4096, 4096, cudaMemcpyHostToDevice));
    });
    device("copies_down_small", "bytes=4096 copies=50", [] {
        for (int i = 0; i < 50; i++) CHECK(cudaMemcpyAsync(back + i * 4096, memory + i * 4096, 4096, cudaMemcpyDeviceToHost));
    });
    device("copies_within_small", "bytes=4096 copies=50", [] {
        for (int i = 0; i < 50; i++) CHECK(cudaMemcpyAsync(other + i * 4096, memory + i * 4096, 4096, cudaMemcpyDeviceToDevice));
    });
    device("fills_small", "bytes=4096 fills=50", [] {
        for (int i = 0; i < 50; i++) CHECK(cudaMemsetAsync(memory + i * 4096, 0, 4096));
    });
}

static void copies_together() {
    device("copies_both_ways", "bytes=8 MiB each", [] {
        in_streams(2, [](int i) {
            if (i == 0) CHECK(cudaMemcpyAsync(memory, pinned, 8 * MIB, cudaMemcpyHostToDevice, streams[i]));
            else CHECK(cudaMemcpyAsync(back, other, 8 * MIB, cudaMemcpyDeviceToHost, streams[i]));
        });
    });
    for (int count : {2, 4}) {
        size_t bytes = 8 * MIB / count;
        device("copies_up_together", text("streams=%d bytes=8 MiB in all", count), [=] {
            in_streams(count, [=](int i) { CHECK(cudaMemcpyAsync(memory + i * bytes, pinned + i * bytes, bytes, cudaMemcpyHostToDevice, streams[i])); });
        });
        device("copies_down_together", text("streams=%d bytes=8 MiB in all", count), [=] {
            in_streams(count, [=](int i) { CHECK(cudaMemcpyAsync(back + i * bytes, memory + i * bytes, bytes, cudaMemcpyDeviceToHost, streams[i])); });
        });
        device("pipelines", text("streams=%d bytes=8 MiB each way", count), [=] {
            in_streams(count, [=](int i) {
                CHECK(cudaMemcpyAsync(memory + i * bytes, pinned + i * bytes, bytes, cudaMemcpyHostToDevice, streams[i]));
                work<<<int(bytes / 4 / 256), 256, 0, streams[i]>>>(words(i * bytes), int(bytes / 4), 50);
                CHECK(cudaMemcpyAsync(back + i * bytes, memory + i * bytes, bytes, cudaMemcpyDeviceToHost, streams[i]));
            });
        });
    }
    device("copy_beside_kernel", "bytes=4 MiB", [] {
        in_streams(2, [](int i) {
            if (i == 0) CHECK(cudaMemcpyAsync(other, pinned, 4 * MIB, cudaMemcpyHostToDevice, streams[i]));
            else work<<<132, 256, 0, streams[i]>>>(words(), 132 * 256, 5000);
        });
    });
    device("read_host_memory", "bytes=1 MiB", [] { read_all<<<132, 256>>>(reinterpret_cast<float*>(pinned), MIB / 4, words()); });
    device("write_host_memory", "bytes=1 MiB", [] { add_one<<<132, 256>>>(reinterpret_cast<float*>(back), MIB / 4); });
}

static cudaGraphExec_t captured(const Step& step) {
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
    step();
    CHECK(cudaStreamEndCapture(streams[0], &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return ready;
}

static void launches() {
    device("nothing", "two events", [] {});
    for (int count : {1, 10, 100})
        device("launches", text("empty kernels=%d", count), [=] {
            for (int i = 0; i < count; i++) empty<<<1, 32>>>();
        });
    device("launches_wide", "empty kernels=20 blocks=1056", [] {
        for (int i = 0; i < 20; i++) empty<<<1056, 256>>>();
    });
    device("launches_dependent", "kernels=20 blocks=132 rounds=100", [] {
        for (int i = 0; i < 20; i++) work<<<132, 256>>>(words(), 132 * 256, 100);
    });
    device("launch_with_arguments", "bytes=4000 kernels=20", [] {
        static LargeArgument argument = {};
        for (int i = 0; i < 20; i++) takes_much<<<1, 32>>>(argument, reinterpret_cast<int*>(memory));
    });
    for (int count : {1, 10, 100}) {
        cudaGraphExec_t graph = captured([=] {
            for (int i = 0; i < count; i++) empty<<<1, 32, 0, streams[0]>>>();
        });
        device("graph", text("empty kernels=%d", count), [=] { CHECK(cudaGraphLaunch(graph, 0)); });
        host("graph_launch_call", text("empty kernels=%d", count), [=] { CHECK(cudaGraphLaunch(graph, 0)); });
        CHECK(cudaGraphExecDestroy(graph));
    }
    cudaGraphExec_t branches = captured([] {
        CHECK(cudaEventRecord(fork_event, streams[0]));
        for (int branch = 0; branch < 4; branch++) {
            if (branch) CHECK(cudaStreamWaitEvent(streams[branch], fork_event));
            for (int i = 0; i < 10; i++) work<<<16, 256, 0, streams[branch]>>>(words(branch * MIB), 16 * 256, 100);
            if (branch) {
                CHECK(cudaEventRecord(join_events[branch], streams[branch]));
                CHECK(cudaStreamWaitEvent(streams[0], join_events[branch]));
            }
        }
    });
    device("graph_with_branches", "branches=4 kernels=10 each", [=] { CHECK(cudaGraphLaunch(branches, 0)); });
    CHECK(cudaGraphExecDestroy(branches));
    cudaGraphExec_t mixed = captured([] {
        CHECK(cudaMemcpyAsync(memory, pinned, MIB, cudaMemcpyHostToDevice, streams[0]));
        for (int i = 0; i < 5; i++) work<<<132, 256, 0, streams[0]>>>(words(), 132 * 256, 100);
        CHECK(cudaMemsetAsync(other, 0, MIB, streams[0]));
        CHECK(cudaMemcpyAsync(back, memory, MIB, cudaMemcpyDeviceToHost, streams[0]));
    });
    device("graph_with_copies", "bytes=1 MiB kernels=5", [=] { CHECK(cudaGraphLaunch(mixed, 0)); });
    CHECK(cudaGraphExecDestroy(mixed));
}

static void kernels_together() {
    for (int count : {1, 2, 4})
        device("partial_grids", text("streams=%d blocks=66 rounds=2000", count), [=] {
            in_streams(count, [](int i) { work<<<66, 256, 0, streams[i]>>>(words(i * MIB), 66 * 256, 2000); });
        });
    device("full_grids", "streams=4 blocks=132 threads=1024 rounds=500", [] {
        in_streams(4, [](int i) { work<<<132, 1024, 0, streams[i]>>>(words(i * MIB), 132 * 1024, 500); });
    });
    device("single_blocks", "streams=16 rounds=2000", [] {
        in_streams(16, [](int i) { work<<<1, 256, 0, streams[i]>>>(words(i * MIB), 256, 2000); });
    });
    device("one_kernel", "blocks=66 rounds=2000", [] { work<<<66, 256>>>(words(), 66 * 256, 2000); });
    static cudaStream_t low, high;
    static int least, greatest;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
    CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
    for (bool urgent : {false, true})
        device("priority", urgent ? "high behind a full GPU" : "low behind a full GPU", [=] {
            CHECK(cudaEventRecord(fork_event));
            CHECK(cudaStreamWaitEvent(low, fork_event));
            CHECK(cudaStreamWaitEvent(high, fork_event));
            work<<<132 * 8 * 2, 256, 0, low>>>(words(), 132 * 8 * 2 * 256, 400);
            cudaStream_t second = urgent ? high : low;
            work<<<16, 256, 0, second>>>(words(32 * MIB), 16 * 256, 100);
            CHECK(cudaEventRecord(join_events[0], second));
            CHECK(cudaStreamWaitEvent(0, join_events[0]));
        });
    CHECK(cudaDeviceSynchronize());
    device("events", "records=50", [] {
        for (int i = 0; i < 50; i++) CHECK(cudaEventRecord(join_events[i % STREAMS]));
    });
    device("ping_pong", "streams=2 kernels=20", [] {
        CHECK(cudaEventRecord(fork_event));
        CHECK(cudaStreamWaitEvent(streams[0], fork_event));
        for (int i = 0; i < 20; i++) {
            empty<<<1, 32, 0, streams[i % 2]>>>();
            CHECK(cudaEventRecord(join_events[i % 2], streams[i % 2]));
            CHECK(cudaStreamWaitEvent(streams[(i + 1) % 2], join_events[i % 2]));
        }
        CHECK(cudaStreamWaitEvent(0, join_events[1]));
    });
    device("callbacks", "callbacks=10 kernels=10", [] {
        for (int i = 0; i < 10; i++) {
            empty<<<1, 32>>>();
            CHECK(cudaLaunchHostFunc(0, [](void*) {}, nullptr));
        }
    });
}

static void counters_and_barriers() {
    static int* counters = reinterpret_cast<int*>(other);
    static int rounds = 0;
    CHECK(cudaMemset(other, 0, MIB));
    device("contended_counter", "blocks=132 warps=1 rounds=100", [] { count_at<<<132, 32>>>(counters, 0, 100); });
    device("contended_counter", "blocks=132 warps=4 rounds=50", [] { count_at<<<132, 128>>>(counters, 0, 50); });
    device("contended_counters", "counters=32 blocks=132 rounds=100", [] { count_at<<<132, 32>>>(counters, 64, 100); });
    for (int count : {1, 10, 50}) {
        rounds = count;
        device("grid_barriers", text("barriers=%d blocks=132", count), [] {
            void* arguments[] = {&counters, &rounds};
            CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(meet_grid), 132, 256, arguments, 0, 0));
        });
    }
    device("own_barriers", "barriers=20 blocks=132", [] { meet_by_counter<<<132, 64>>>(reinterpret_cast<unsigned*>(other + 4096), 20); },
           [] { CHECK(cudaMemset(other + 4096, 0, 4)); });
}

static void managed_memory() {
    constexpr size_t BYTES = 8 * MIB;
    static float* managed;
    static cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0}, cpu = {cudaMemLocationTypeHost, 0};
    CHECK(cudaMallocManaged(&managed, BYTES));
    auto touch = [] { for (size_t i = 0; i < BYTES / 4; i += 256) managed[i] = 1.0f; };
    device("managed_first_pass", "bytes=8 MiB", [] { add_one<<<264, 256>>>(managed, BYTES / 4); }, touch);
    device("managed_second_pass", "bytes=8 MiB", [] { add_one<<<264, 256>>>(managed, BYTES / 4); });
    device("managed_prefetch", "bytes=8 MiB", [] { CHECK(cudaMemPrefetchAsync(managed, BYTES, gpu, 0, 0)); }, touch);
    device("managed_pass_after_prefetch", "bytes=8 MiB", [] { add_one<<<264, 256>>>(managed, BYTES / 4); }, [&] {
        touch();
        CHECK(cudaMemPrefetchAsync(managed, BYTES, gpu, 0, 0));
    });
    device("managed_prefetch_back", "bytes=8 MiB", [] { CHECK(cudaMemPrefetchAsync(managed, BYTES, cpu, 0, 0)); },
           [] { CHECK(cudaMemPrefetchAsync(managed, BYTES, gpu, 0, 0)); });
    CHECK(cudaFree(managed));
}

template <int NUMBER, int COUNT>
static void first_launches(std::vector<double>& short_device, std::vector<double>& long_device, std::vector<double>& short_host) {
    if constexpr (NUMBER < COUNT) {
        CHECK(cudaDeviceSynchronize());
        short_device.push_back(timed_by_events([] { never_launched<NUMBER><<<1, 32>>>(reinterpret_cast<int*>(memory)); }));
        long_device.push_back(timed_by_events([] { never_launched_long<NUMBER><<<1, 32>>>(reinterpret_cast<unsigned*>(memory)); }));
        CHECK(cudaDeviceSynchronize());
        short_host.push_back(timed_by_host([] { never_launched<NUMBER + 100><<<1, 32>>>(reinterpret_cast<int*>(memory)); }));
        first_launches<NUMBER + 1, COUNT>(short_device, long_device, short_host);
    }
}

static void costs_of_calls() {
    static void* allocated;
    static cudaStream_t stream;
    static cudaEvent_t event;
    host("launch_call", "kernels=50", [] { empty<<<1, 32>>>(); }, [] {}, 50);
    host("launch_and_wait", "empty", [] { empty<<<1, 32>>>(); CHECK(cudaDeviceSynchronize()); });
    host("copy_call", "bytes=4096 pinned calls=50", [] { CHECK(cudaMemcpyAsync(memory, pinned, 4096, cudaMemcpyHostToDevice)); }, [] {}, 50);
    host("copy_and_wait", "bytes=4 down", [] { CHECK(cudaMemcpy(back, memory, 4, cudaMemcpyDeviceToHost)); });
    host("copy_and_wait", "bytes=4096 up pageable", [] { CHECK(cudaMemcpy(memory, pageable.data(), 4096, cudaMemcpyHostToDevice)); });
    for (size_t bytes : {1 * MIB, 64 * MIB}) {
        host("allocate", text("bytes=%zu", bytes), [=] { CHECK(cudaMalloc(&allocated, bytes)); }, [] { CHECK(cudaFree(allocated)); });
        host("allocate_and_free", text("bytes=%zu", bytes), [=] { CHECK(cudaMalloc(&allocated, bytes)); CHECK(cudaFree(allocated)); });
    }
    host("allocate_pinned", "bytes=1 MiB", [] { CHECK(cudaMallocHost(&allocated, MIB)); }, [] { CHECK(cudaFreeHost(allocated)); });
    host("allocate_in_stream", "bytes=1 MiB pairs=20", [] { CHECK(cudaMallocAsync(&allocated, MIB, 0)); CHECK(cudaFreeAsync(allocated, 0)); }, [] {}, 20);
    host("allocate_managed", "bytes=1 MiB", [] { CHECK(cudaMallocManaged(&allocated, MIB)); }, [] { CHECK(cudaFree(allocated)); });
    host("register_host_memory", "bytes=16 MiB", [] { CHECK(cudaHostRegister(pageable.data(), pageable.size(), 0)); }, [] { CHECK(cudaHostUnregister(pageable.data())); });
    host("create_stream", "", [] { CHECK(cudaStreamCreate(&stream)); }, [] { CHECK(cudaStreamDestroy(stream)); });
    host("create_event", "", [] { CHECK(cudaEventCreate(&event)); }, [] { CHECK(cudaEventDestroy(event)); });
    host("record_event", "calls=50", [] { CHECK(cudaEventRecord(fork_event)); }, [] {}, 50);
    host("query_event", "calls=50", [] { CHECK(cudaEventQuery(fork_event)); }, [] {}, 50);
    host("wait_for_idle_stream", "", [] { CHECK(cudaStreamSynchronize(streams[0])); });
    host("wait_for_idle_device", "", [] { CHECK(cudaDeviceSynchronize()); });
    host("memory_info", "", [] { size_t free, all; CHECK(cudaMemGetInfo(&free, &all)); });
    host("pointer_attributes", "", [] { cudaPointerAttributes attributes; CHECK(cudaPointerGetAttributes(&attributes, memory)); });
    host("function_attributes", "", [] { cudaFuncAttributes attributes; CHECK(cudaFuncGetAttributes(&attributes, empty)); });
}

int main(int argc, char** argv) {
    if (argc > 1) repetitions = std::atoi(argv[1]);
    if (argc > 2) only = argv[2];
    if (repetitions < 1) return std::fprintf(stderr, "scenarios: `%s` repetitions; expected a number from 1\n", argv[1]), 2;
    for (char** both : {&memory, &other}) CHECK(cudaMalloc(both, 64 * MIB));
    for (char** both : {&pinned, &back}) {
        CHECK(cudaMallocHost(both, 16 * MIB));
        std::memset(*both, 0, 16 * MIB);
    }
    CHECK(cudaMemset(memory, 0, 64 * MIB));
    for (cudaStream_t& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (cudaEvent_t* event : {&begin_event, &end_event, &fork_event}) CHECK(cudaEventCreate(event));
    for (cudaEvent_t& event : join_events) CHECK(cudaEventCreate(&event));
    std::printf("scenario,parameter,clock,median_us,low_us,high_us,repetitions\n");
    if (asked("first_launch")) {
        std::vector<double> small, large, call;
        first_launches<0, 9>(small, large, call);
        print("first_launch", "small kernel", "device", small);
        print("first_launch", "kernel of 100 KiB", "device", large);
        print("first_launch", "small kernel", "host", call);
    }
    // A simulated clock is always up.
    if (repetitions > 5) warm_up();
    copies();
    copies_together();
    launches();
    kernels_together();
    counters_and_barriers();
    managed_memory();
    costs_of_calls();
    return 0;
}
