/* A GPU whose memory somebody else models: outside_memory [LATENCY in ns]...
 *
 * Every request that leaves an L1 cache comes to `asked`, which answers it after a latency, one sector after the other.
 * A simulator with a memory hierarchy of its own would send it there, and complete it when the answer comes back.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep.h"

#define COUNT 8192

static const char PTX[] =
    ".version 8.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry twice(.param .u64 a, .param .u64 sum)\n{\n"
    "    .reg .b32 %i, %block, %size, %lane, %x, %old;\n    .reg .b64 %a, %sum, %offset;\n"
    "    mov.u32 %block, %ctaid.x;\n    mov.u32 %size, %ntid.x;\n    mov.u32 %lane, %tid.x;\n"
    "    mad.lo.u32 %i, %block, %size, %lane;\n    mul.wide.u32 %offset, %i, 4;\n"
    "    ld.param.u64 %a, [a];\n    ld.param.u64 %sum, [sum];\n    add.u64 %a, %a, %offset;\n"
    "    ld.global.u32 %x, [%a];\n    add.u32 %x, %x, %x;\n    st.global.u32 [%a], %x;\n"
    "    atom.global.add.u32 %old, [%sum], %x;\n    ret;\n}\n";

struct memory {
    LockstepGpu *gpu;
    uint64_t latency, free, reads, writes, atomics;
    int blocks;
};

/* Ends the program where a call fails. */
static void check(LockstepGpu *gpu, LockstepStatus status)
{
    if (status != LOCKSTEP_STATUS_OK) {
        fprintf(stderr, "status %d: %s\n", (int)status, lockstep_message(gpu));
        exit(1);
    }
}

static void asked(void *context, const LockstepMemoryRequest *request)
{
    struct memory *memory = context;
    uint64_t begin = request->time > memory->free ? request->time : memory->free;
    for (uint32_t sectors = request->sectors; sectors; sectors &= sectors - 1) {
        memory->free = begin += UINT64_C(10000); /* 32 bytes in 10 ps */
        memory->reads += request->access == LOCKSTEP_ACCESS_READ;
        memory->writes += request->access == LOCKSTEP_ACCESS_WRITE;
        memory->atomics += request->access == LOCKSTEP_ACCESS_ATOMIC;
    }
    check(memory->gpu, lockstep_complete(memory->gpu, request->number, begin + memory->latency));
}

static void block_ended(void *context, uint32_t launch, uint32_t sm, uint64_t time)
{
    (void)launch, (void)sm, (void)time;
    ++((struct memory *)context)->blocks;
}

static int run(uint64_t latency)
{
    static uint32_t values[COUNT];
    LockstepOptions options = {0};
    struct memory memory = {0};
    char reason[500];
    uint32_t module, kernel, launch, sum;
    uint64_t address[2], cycles, expected = 0;

    if (lockstep_create(&options, &memory.gpu, reason, sizeof reason) != LOCKSTEP_STATUS_OK) {
        fprintf(stderr, "%s\n", reason);
        return 1;
    }
    LockstepGpu *gpu = memory.gpu;
    memory.latency = latency * UINT64_C(1000000);
    check(gpu, lockstep_on_memory_request(gpu, asked, &memory));
    check(gpu, lockstep_on_block_end(gpu, block_ended, &memory));
    check(gpu, lockstep_load_module(gpu, (const uint8_t *)PTX, strlen(PTX), &module));
    check(gpu, lockstep_find_kernel(gpu, module, "twice", &kernel));
    check(gpu, lockstep_allocate(gpu, sizeof values, &address[0]));
    check(gpu, lockstep_allocate(gpu, sizeof sum, &address[1]));
    for (uint32_t i = 0; i < COUNT; ++i)
        expected += 2 * (values[i] = i);
    check(gpu, lockstep_write(gpu, address[0], values, sizeof values));
    const void *arguments[] = {&address[0], &address[1]};
    LockstepLaunch described = {
        .kernel = kernel, .grid = {COUNT / 128, 1, 1}, .block = {128, 1, 1}, .arguments = arguments, .arguments_count = 2};
    check(gpu, lockstep_launch(gpu, &described, &launch));
    check(gpu, lockstep_finish(gpu));
    check(gpu, lockstep_read(gpu, address[0], values, sizeof values));
    check(gpu, lockstep_read(gpu, address[1], &sum, sizeof sum));
    check(gpu, lockstep_counter(gpu, launch, "cycles", &cycles));
    int wrong = sum != (uint32_t)expected;
    for (uint32_t i = 0; i < COUNT; ++i)
        wrong += values[i] != 2 * i;
    printf("%d wrong, %d blocks, %" PRIu64 " cycles, %" PRIu64 " sectors read, %" PRIu64 " written, %" PRIu64 " atomics\n",
           wrong, memory.blocks, cycles, memory.reads, memory.writes, memory.atomics);
    lockstep_destroy(gpu);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; ++i)
        failed |= run(strtoull(argv[i], NULL, 10));
    return failed;
}
