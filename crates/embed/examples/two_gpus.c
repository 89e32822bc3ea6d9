/* Several simulations in one process, whose time passes in turns: two_gpus COUNT...
 *
 * Each COUNT is a simulation of so many launches; its digest is printed in a line. That of a process with one
 * simulation is the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep.h"

#define MOST 8

static const char PTX[] =
    ".version 8.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry bump(.param .u64 where)\n{\n"
    "    .reg .b32 %i, %block, %size, %lane, %old;\n    .reg .b64 %p, %offset;\n"
    "    mov.u32 %block, %ctaid.x;\n    mov.u32 %size, %ntid.x;\n    mov.u32 %lane, %tid.x;\n"
    "    mad.lo.u32 %i, %block, %size, %lane;\n    ld.param.u64 %p, [where];\n"
    "    atom.global.add.u32 %old, [%p], 1;\n"
    "    mul.wide.u32 %offset, %i, 4;\n    add.u64 %p, %p, %offset;\n    st.global.u32 [%p+64], %old;\n    ret;\n}\n";

static void check(LockstepGpu *gpu, LockstepStatus status)
{
    if (status != LOCKSTEP_STATUS_OK) {
        fprintf(stderr, "status %d: %s\n", (int)status, lockstep_message(gpu));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    LockstepGpu *gpus[MOST];
    int many = argc - 1;
    uint32_t idle;

    if (many < 1 || many > MOST)
        return 2;
    for (int i = 0; i < many; ++i) {
        LockstepOptions options = {0};
        char reason[500];
        uint32_t module, kernel, launch;
        uint64_t address;

        options.threads = 1 + i;
        if (lockstep_create(&options, &gpus[i], reason, sizeof reason) != LOCKSTEP_STATUS_OK) {
            fprintf(stderr, "%s\n", reason);
            return 1;
        }
        check(gpus[i], lockstep_load_module(gpus[i], (const uint8_t *)PTX, strlen(PTX), &module));
        check(gpus[i], lockstep_find_kernel(gpus[i], module, "bump", &kernel));
        check(gpus[i], lockstep_allocate(gpus[i], 64 << 10, &address));
        const void *arguments[] = {&address};
        LockstepLaunch described = {
            .kernel = kernel, .grid = {8, 1, 1}, .block = {128, 1, 1}, .arguments = arguments, .arguments_count = 1};
        for (int launches = atoi(argv[1 + i]); launches > 0; --launches)
            check(gpus[i], lockstep_launch(gpus[i], &described, &launch));
    }
    /* In turns, a microsecond each, until all are done. */
    for (uint64_t until = 1000000000, left = 1; left > 0; until += 1000000000) {
        left = 0;
        for (int i = 0; i < many; ++i) {
            check(gpus[i], lockstep_is_idle(gpus[i], &idle));
            if (!idle) {
                check(gpus[i], lockstep_advance(gpus[i], until));
                ++left;
            }
        }
    }
    for (int i = 0; i < many; ++i) {
        char digest[65];
        check(gpus[i], lockstep_digest(gpus[i], digest, sizeof digest));
        printf("%s\n", digest);
        lockstep_destroy(gpus[i]);
    }
    return 0;
}
