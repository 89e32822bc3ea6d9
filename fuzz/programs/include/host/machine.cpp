// The machine that runs a program's kernels on the host: each lane is a fiber, blocks run one after the other.
//
//   PROGRAM MANIFEST [--only k4] [--fill BYTE] [--limit SECONDS] [--dump]
//
// What a block's shared memory holds at first is given by --fill: a result that depends on it comes of a read before
// any write.
#include "host.h"


#include <vector>
#include "../manifest.h"


#include <deque>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace host {

const Place *now;
Dim block_dim, grid_dim;
unsigned char *dynamic_shared;

namespace {

const size_t STACK = 256 * 1024;

struct Fiber {
    Place place{};
    void *sp = nullptr;
    unsigned char *stack = nullptr;
    unsigned thread = 0;
    bool done = false;
    // Of the last meeting of lanes.
    unsigned took_part = 0;
    uint64_t seen[32];
    Met met{};
};

// Lanes of a warp that wait for the others of their mask.
struct Meeting {
    unsigned mask = 0, here = 0;
    uint64_t values[32];
};

struct Barrier {
    unsigned here = 0, threads = 0, count = 0, all = 1, any = 0;
    std::vector<Fiber *> waiting;
};

struct Warp {
    unsigned live = 0;
    std::vector<Meeting> meetings;
};

std::vector<Fiber> fibers;
std::deque<Fiber *> ready;
std::vector<Warp> warps;
Barrier barriers[16];
Fiber *running;
void *scheduler;
unsigned live;
bool in_machine = true;
const char *trouble;

struct Arguments {
    const Launch *launch;
    const unsigned char *input;
    unsigned long long *output;
    unsigned char *memory;
    const unsigned char *params;
} arguments;

extern "C" void switch_stack(void **from, void *to);
// Registers that calls keep, and the rounding of floats.
asm(R"(
switch_stack:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    sub $8, %rsp
    stmxcsr (%rsp)
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    ldmxcsr (%rsp)
    add $8, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
)");

void leave() { switch_stack(&running->sp, scheduler); }

void wake(Fiber *fiber) { ready.push_back(fiber); }

// Ends meetings whose lanes are all there; those that have ended for good are not awaited.
void settle(Warp &warp, unsigned first) {
    for (size_t index = 0; index < warp.meetings.size();) {
        Meeting &meeting = warp.meetings[index];
        if (meeting.here != (meeting.mask & warp.live)) {
            index++;
            continue;
        }
        for (unsigned lane = 0; lane < 32; lane++)
            if (meeting.here >> lane & 1) {
                Fiber &fiber = fibers[first + lane];
                fiber.took_part = meeting.here;
                memcpy(fiber.seen, meeting.values, sizeof meeting.values);
                wake(&fiber);
            }
        warp.meetings.erase(warp.meetings.begin() + (long)index);
    }
}

void settle(Barrier &barrier) {
    if (!barrier.here || barrier.here < (barrier.threads ? barrier.threads : live))
        return;
    Met met = {barrier.count, barrier.all, barrier.any};
    for (Fiber *fiber : barrier.waiting) {
        fiber->met = met;
        wake(fiber);
    }
    barrier = Barrier();
}

void finish() {
    in_machine = true;
    running->done = true;
    live--;
    Warp &warp = warps[running->thread / 32];
    warp.live &= ~(1u << running->place.lane);
    settle(warp, running->thread / 32 * 32);
    for (Barrier &barrier : barriers)
        if (!barrier.threads)
            settle(barrier);
    leave();
}

void enter() {
    in_machine = false;
    arguments.launch->call(arguments.input, arguments.output, arguments.memory, arguments.params);
    finish();
}

void start(Fiber &fiber) {
    if (!fiber.stack)
        fiber.stack = (unsigned char *)mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    // A return address into `enter`, six registers, the rounding.
    uint64_t *top = (uint64_t *)(fiber.stack + STACK) - 1;
    *--top = (uint64_t)(void *)enter;
    for (int index = 0; index < 6; index++)
        *--top = 0;
    *--top = _mm_getcsr();
    fiber.sp = top;
    fiber.done = false;
}

void run_block(Dim block, unsigned threads) {
    live = threads;
    warps.assign((threads + 31) / 32, Warp());
    for (Barrier &barrier : barriers)
        barrier = Barrier();
    ready.clear();
    for (unsigned thread = 0; thread < threads; thread++) {
        Fiber &fiber = fibers[thread];
        fiber.thread = thread;
        fiber.place = {{thread % block_dim.x, thread / block_dim.x % block_dim.y, thread / block_dim.x / block_dim.y}, block, thread % 32};
        start(fiber);
        warps[thread / 32].live |= 1u << thread % 32;
        wake(&fiber);
    }
    while (!ready.empty()) {
        running = ready.front();
        ready.pop_front();
        now = &running->place;
        switch_stack(&scheduler, running->sp);
        if (trouble)
            return;
    }
    if (live)
        trouble = "error deadlock";
}

// Threads that wait for others without saying so get turns by the clock.
void turn(int) {
    if (!in_machine)
        yield();
}

} // namespace

unsigned together(unsigned mask, uint64_t value, const uint64_t *&values) {
    in_machine = true;
    Warp &warp = warps[running->thread / 32];
    unsigned lane = running->place.lane;
    Meeting *meeting = nullptr;
    for (Meeting &one : warp.meetings)
        if (one.mask == mask && !(one.here >> lane & 1))
            meeting = &one;
    if (!meeting) {
        warp.meetings.emplace_back();
        meeting = &warp.meetings.back();
        meeting->mask = mask | 1u << lane;
        meeting->mask = mask;
    }
    meeting->here |= 1u << lane;
    meeting->values[lane] = value;
    settle(warp, running->thread / 32 * 32);
    leave();
    in_machine = false;
    values = running->seen;
    return running->took_part;
}

Met barrier(unsigned number, unsigned threads, bool waits, unsigned predicate) {
    in_machine = true;
    Barrier &barrier = barriers[number & 15];
    // A last warp that is not full counts as one that is.
    unsigned after = (unsigned)fibers.size() - running->thread / 32 * 32, weight = 1;
    if (threads && after < 32 && running->place.lane == 0)
        weight += 32 - after;
    barrier.threads = threads;
    barrier.here += weight;
    barrier.count += predicate;
    barrier.all &= predicate;
    barrier.any |= predicate;
    if (waits)
        barrier.waiting.push_back(running);
    settle(barrier);
    if (waits)
        leave();
    in_machine = false;
    return running->met;
}

void yield() {
    in_machine = true;
    wake(running);
    leave();
    in_machine = false;
}

void unsupported(const char *what) {
    static std::string text;
    in_machine = true;
    text = std::string("skip ") + what;
    trouble = text.c_str();
    leave();
    abort();
}

void trap() {
    in_machine = true;
    trouble = "error 719";
    leave();
    abort();
}

namespace {

struct Options {
    std::string manifest, only;
    int fill = 0, limit = 60;
    bool dump = false;
};

void fill_variables(const Program &program) {
    for (size_t place = 0; place < program.symbols.size(); place++)
        for (const Variable *variable = variables; variable->name; variable++)
            if (variable->name == program.symbols[place].name) {
                std::vector<uint8_t> bytes = program.symbol_bytes(place);
                memcpy(variable->address, bytes.data(), std::min(bytes.size(), variable->bytes));
            }
}

void run(const Program &program, const Kernel &kernel, const Launch &launch, const Options &options) {
    fill_variables(program);
    std::vector<uint8_t> input = program.input_bytes(kernel), params;
    for (const std::vector<uint8_t> &param : program.param_bytes(kernel))
        params.insert(params.end(), param.begin(), param.end());
    params.resize(params.size() + 16);
    // Memory of CUDA is aligned to 256 bytes.
    auto aligned = [](size_t bytes) { return (unsigned char *)aligned_alloc(256, bytes / 256 * 256 + 256); };
    unsigned char *in = aligned(input.size()), *out = aligned(kernel.output * 8), *memory = aligned(kernel.memory);
    memcpy(in, input.data(), input.size());
    memset(out, 0, kernel.output * 8);
    memset(memory, 0, kernel.memory);
    dynamic_shared = aligned(kernel.shared);
    arguments = {&launch, in, (unsigned long long *)out, memory, params.data()};
    block_dim = {kernel.block[0], kernel.block[1], kernel.block[2]};
    grid_dim = {kernel.grid[0], kernel.grid[1], kernel.grid[2]};
    unsigned threads = block_dim.x * block_dim.y * block_dim.z;
    fibers.resize(threads);
    for (unsigned z = 0; z < grid_dim.z && !trouble; z++)
        for (unsigned y = 0; y < grid_dim.y && !trouble; y++)
            for (unsigned x = 0; x < grid_dim.x && !trouble; x++) {
                if (shared_start)
                    memset(shared_start, options.fill, (size_t)(shared_end - shared_start));
                memset(dynamic_shared, options.fill, kernel.shared);
                run_block({x, y, z}, threads);
            }
    if (trouble) {
        printf("%s %s %s\n", program.name.c_str(), kernel.name.c_str(), trouble);
        return;
    }
    if (options.dump)
        dump(stdout, program, kernel, out, memory);
    printf("%s %s %016llx\n", program.name.c_str(), kernel.name.c_str(), (unsigned long long)digest_of(out, kernel.output * 8, memory, kernel.memory));
}

int judge(const Options &options) {
    Program program = Program::read(options.manifest, "");
    for (const Kernel &kernel : program.kernels) {
        const Launch *launch = launches;
        while (launch->name && launch->name != kernel.name)
            launch++;
        if (!kernel.host || kernel.cooperative || !launch->name || (!options.only.empty() && options.only != kernel.name))
            continue;
        fflush(stdout);
        // A kernel that fails takes nothing else with it.
        pid_t process = fork();
        if (process == 0) {
            struct sigaction action{};
            action.sa_handler = turn;
            action.sa_flags = SA_NODEFER | SA_RESTART;
            sigaction(SIGVTALRM, &action, nullptr);
            itimerval every = {{0, 20000}, {0, 20000}};
            setitimer(ITIMER_VIRTUAL, &every, nullptr);
            alarm((unsigned)options.limit);
            run(program, kernel, *launch, options);
            fflush(stdout);
            _exit(0);
        }
        int status = 0;
        waitpid(process, &status, 0);
        if (WIFSIGNALED(status))
            printf("%s %s error %s\n", program.name.c_str(), kernel.name.c_str(), WTERMSIG(status) == SIGALRM ? "hang" : WTERMSIG(status) == SIGFPE ? "division" : "crash");
    }
    return 0;
}

} // namespace

} // namespace host

int main(int count, char **words) {
    host::Options options;
    for (int index = 1; index < count; index++) {
        std::string word = words[index];
        if (word == "--only" && index + 1 < count)
            options.only = words[++index];
        else if (word == "--fill" && index + 1 < count)
            options.fill = atoi(words[++index]);
        else if (word == "--limit" && index + 1 < count)
            options.limit = atoi(words[++index]);
        else if (word == "--dump")
            options.dump = true;
        else
            options.manifest = word;
    }
    return host::judge(options);
}
