/* One kernel on a simulated GPU, from its code to its counters: vector_add [GPU].
 *
 *   cc -I../include vector_add.c -L../../../target/release -llockstep_embed -o vector_add
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep.h"

#define COUNT 4096

static const char PTX[] =
    ".version 8.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry vector_add(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n"
    "    .reg .b32 %i, %block, %size, %lane;\n    .reg .b64 %a, %b, %c, %offset;\n    .reg .f32 %x, %y, %z;\n"
    "    mov.u32 %block, %ctaid.x;\n    mov.u32 %size, %ntid.x;\n    mov.u32 %lane, %tid.x;\n"
    "    mad.lo.u32 %i, %block, %size, %lane;\n    mul.wide.u32 %offset, %i, 4;\n"
    "    ld.param.u64 %a, [a];\n    ld.param.u64 %b, [b];\n    ld.param.u64 %c, [c];\n"
    "    add.u64 %a, %a, %offset;\n    add.u64 %b, %b, %offset;\n    add.u64 %c, %c, %offset;\n"
    "    ld.global.f32 %x, [%a];\n    ld.global.f32 %y, [%b];\n    add.f32 %z, %x, %y;\n"
    "    st.global.f32 [%c], %z;\n    ret;\n}\n";

/* Ends the program where a call fails. */
static void check(LockstepGpu *gpu, LockstepStatus status)
{
    if (status != LOCKSTEP_STATUS_OK) {
        fprintf(stderr, "status %d: %s\n", (int)status, lockstep_message(gpu));
        exit(1);
    }
}

static void ended(void *context, uint32_t launch)
{
    (void)launch;
    ++*(int *)context;
}

static void count(void *context, const char *component, const char *name, const char *unit, uint64_t value)
{
    (void)unit;
    if (strncmp(component, "gpu 0/sm/", 9) == 0 && strcmp(name, "inst_executed") == 0)
        *(uint64_t *)context += value;
}

int main(int argc, char **argv)
{
    static float a[COUNT], b[COUNT], c[COUNT];
    LockstepOptions options = {0};
    LockstepGpu *gpu;
    char reason[500];
    uint32_t module, kernel, launch;
    uint64_t address[3], now, cycles, instructions, of_all_sms = 0;
    int kernels_ended = 0;
    char digest[65];

    options.gpu = argc > 1 ? argv[1] : "h200";
    if (lockstep_create(&options, &gpu, reason, sizeof reason) != LOCKSTEP_STATUS_OK) {
        fprintf(stderr, "%s\n", reason);
        return 1;
    }
    check(gpu, lockstep_on_kernel_end(gpu, ended, &kernels_ended));
    check(gpu, lockstep_load_module(gpu, (const uint8_t *)PTX, strlen(PTX), &module));
    check(gpu, lockstep_find_kernel(gpu, module, "vector_add", &kernel));
    for (int i = 0; i < COUNT; ++i) {
        a[i] = (float)i;
        b[i] = 2 * (float)i;
    }
    for (int i = 0; i < 3; ++i)
        check(gpu, lockstep_allocate(gpu, sizeof a, &address[i]));
    check(gpu, lockstep_write(gpu, address[0], a, sizeof a));
    check(gpu, lockstep_write(gpu, address[1], b, sizeof b));

    const void *arguments[] = {&address[0], &address[1], &address[2]};
    LockstepLaunch described = {
        .kernel = kernel, .grid = {COUNT / 256, 1, 1}, .block = {256, 1, 1}, .arguments = arguments, .arguments_count = 3};
    check(gpu, lockstep_launch(gpu, &described, &launch));

    /* Into the middle of the kernel, then on from what was saved there. */
    check(gpu, lockstep_advance(gpu, UINT64_C(1500000000)));
    const uint8_t *saved;
    size_t bytes;
    LockstepGpu *again;
    check(gpu, lockstep_save(gpu, &saved, &bytes));
    if (lockstep_load(&options, saved, bytes, &again, reason, sizeof reason) != LOCKSTEP_STATUS_OK) {
        fprintf(stderr, "%s\n", reason);
        return 1;
    }
    check(gpu, lockstep_finish(gpu));
    check(again, lockstep_finish(again));

    check(gpu, lockstep_read(gpu, address[2], c, sizeof c));
    int wrong = 0;
    for (int i = 0; i < COUNT; ++i)
        wrong += c[i] != 3 * (float)i;
    check(gpu, lockstep_now(gpu, &now));
    check(gpu, lockstep_counter(gpu, launch, "cycles", &cycles));
    check(gpu, lockstep_counter(gpu, launch, "inst_executed", &instructions));
    check(gpu, lockstep_statistics(gpu, count, &of_all_sms));
    printf("%d wrong, %d kernels ended, %" PRIu64 " cycles, %" PRIu64 " instructions, %" PRIu64 " of all SMs, %" PRIu64 " ns\n",
           wrong, kernels_ended, cycles, instructions, of_all_sms, now / 1000000);
    check(gpu, lockstep_digest(gpu, digest, sizeof digest));
    printf("%s\n", digest);
    check(again, lockstep_digest(again, digest, sizeof digest));
    printf("%s after saving and loading\n", digest);
    lockstep_destroy(again);
    lockstep_destroy(gpu);
    return wrong != 0;
}
