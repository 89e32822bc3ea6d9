/* One simulated GPU for other simulators. Generated from the crate `embed` by its test: UPDATE_EXPECT=1 cargo test --release -p lockstep-embed */

#ifndef LOCKSTEP_H
#define LOCKSTEP_H

#include <stddef.h>
#include <stdint.h>

// Changes when programs that were compiled before no longer work.
#define LOCKSTEP_ABI_MAJOR 0

// Changes when functions come to it.
#define LOCKSTEP_ABI_MINOR 3

// How a call ended.
typedef enum LockstepStatus {
  // All is well.
  LOCKSTEP_STATUS_OK = 0,
  // A pointer, number, name or address is none.
  LOCKSTEP_STATUS_INVALID_ARGUMENT = 1,
  // The GPU cannot be built as it was described.
  LOCKSTEP_STATUS_CONFIGURATION = 2,
  // Code cannot be loaded.
  LOCKSTEP_STATUS_MODULE = 3,
  // A launch was refused, or a kernel failed. Other launches are given up with it.
  LOCKSTEP_STATUS_FAULT = 4,
  // Saved state cannot be taken on.
  LOCKSTEP_STATUS_STATE = 5,
  // The simulator itself failed; the GPU can only be destroyed.
  LOCKSTEP_STATUS_INTERNAL = 6,
} LockstepStatus;

// What a request does.
typedef enum LockstepAccess {
  // It reads sectors.
  LOCKSTEP_ACCESS_READ = 0,
  // It writes some or all bytes of sectors.
  LOCKSTEP_ACCESS_WRITE = 1,
  // It reads a sector, changes it and writes it, and nobody comes between.
  LOCKSTEP_ACCESS_ATOMIC = 2,
} LockstepAccess;

// One simulated GPU.
typedef struct LockstepGpu LockstepGpu;

// One simulated GPU that plays the calls of a program.
typedef struct LockstepPlayback LockstepPlayback;

// The calls of a program, as `lockstep run --record full` writes them (`calls.record` of its run folder).
typedef struct LockstepRecord LockstepRecord;

// One launch.
typedef struct LockstepLaunch {
  // What `lockstep_find_kernel` answered.
  uint32_t kernel;
  // Blocks.
  uint32_t grid[3];
  // Threads of a block.
  uint32_t block[3];
  // Dynamic shared memory of a block, in bytes.
  uint32_t dynamic_shared;
  // Launches of one queue run one after the other, those of different queues side by side.
  uint64_t queue;
  // Where each argument lies; it has as many bytes as its parameter.
  const void *const *arguments;
  // How many there are.
  size_t arguments_count;
} LockstepLaunch;

// What is simulated.
typedef struct LockstepOptions {
  // GPU of the catalogue, or the path of a .toml file; null for `h200`.
  const char *gpu;
  // Changes of settings, each as `KEY=VALUE`.
  const char *const *settings;
  // How many there are.
  size_t settings_count;
  // Worker threads; 0 for as many as there are processors. No result depends on them.
  uint32_t threads;
  // Not 0 for values only, without time.
  uint32_t functional;
} LockstepOptions;

// Is told of every launch that ended, in their order, before the call that let time pass returns.
typedef void (*LockstepKernelEnd)(void *context, uint32_t launch);

// Is told of every block that ended: its launch, the SM, and when the CTA scheduler heard of it, in femtoseconds.
typedef void (*LockstepBlockEnd)(void *context, uint32_t launch, uint32_t sm, uint64_t time);

// A request that has left the GPU.
typedef struct LockstepMemoryRequest {
  // What `lockstep_complete` takes.
  uint64_t number;
  // Address of a line of 128 bytes.
  uint64_t address;
  // When it left, in femtoseconds since the beginning.
  uint64_t time;
  // Which of the line's four sectors of 32 bytes, a bit each.
  uint32_t sectors;
  // What it does.
  enum LockstepAccess access;
  // The SM that asks.
  uint32_t sm;
  // The slice of L2 that would have it.
  uint32_t slice;
} LockstepMemoryRequest;

// Is told of every request that leaves the L1 caches, in the order of time. The request lives until it returns.
typedef void (*LockstepMemoryListener)(void *context, const struct LockstepMemoryRequest *request);

// How far a playback has come.
typedef struct LockstepProgress {
  // Where the GPU stands, in femtoseconds since the beginning.
  uint64_t now;
  // Simulated time of the host in femtoseconds: when the last call was answered, if an entry is wanted.
  uint64_t host;
  // Not 0 if all that was entered is done, and time passes only after the next entry.
  uint32_t wants_entry;
  // Not 0 if it is over: it failed, and `lockstep_playback_finish` says why.
  uint32_t is_over;
} LockstepProgress;

// Is given every statistic: the component, the statistic, its unit and its value. The texts live until it returns.
typedef void (*LockstepVisitor)(void *context,
                                const char *component,
                                const char *name,
                                const char *unit,
                                uint64_t value);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library that was loaded: major in the upper 16 bits, minor in the lower.
uint32_t lockstep_abi_version(void);

// Loads PTX text, a cubin or a fat binary.
//
// # Safety
// The pointers are good; `image` for `image_bytes` bytes.
enum LockstepStatus lockstep_load_module(struct LockstepGpu *gpu,
                                         const uint8_t *image,
                                         size_t image_bytes,
                                         uint32_t *module);

// Finds a kernel of a module by its (mangled) name.
//
// # Safety
// The pointers are good.
enum LockstepStatus lockstep_find_kernel(struct LockstepGpu *gpu,
                                         uint32_t module,
                                         const char *name,
                                         uint32_t *kernel);

// Takes memory of the GPU, which reads zero. Addresses are the same in every simulation that asks for the same.
//
// # Safety
// The pointers are good.
enum LockstepStatus lockstep_allocate(struct LockstepGpu *gpu,
                                      uint64_t bytes,
                                      uint64_t *address);

// Writes memory of the GPU, as a copy of the host that takes no time.
//
// # Safety
// The pointers are good; `data` for `bytes` bytes.
enum LockstepStatus lockstep_write(struct LockstepGpu *gpu,
                                   uint64_t address,
                                   const void *data,
                                   size_t bytes);

// Reads memory of the GPU.
//
// # Safety
// The pointers are good; `data` may be written for `bytes` bytes.
enum LockstepStatus lockstep_read(struct LockstepGpu *gpu,
                                  uint64_t address,
                                  void *data,
                                  size_t bytes);

// Hands a kernel to the GPU; it begins when time passes.
//
// # Safety
// The pointers are good, and those of the arguments for as many bytes as their parameters have.
enum LockstepStatus lockstep_launch(struct LockstepGpu *gpu,
                                    const struct LockstepLaunch *launch,
                                    uint32_t *number);

// Makes an idle GPU at time zero. On failure `message`, if it is not null, gets the reason, cut to `message_bytes`.
//
// # Safety
// The pointers are good, and those in `options` too.
enum LockstepStatus lockstep_create(const struct LockstepOptions *options,
                                    struct LockstepGpu **gpu,
                                    char *message,
                                    size_t message_bytes);

// Makes a GPU that goes on where another was saved, with the same GPU, settings and mode. On failure `message`, if it
// is not null, gets the reason, cut to `message_bytes`.
//
// # Safety
// The pointers are good, and those in `options` too.
enum LockstepStatus lockstep_load(const struct LockstepOptions *options,
                                  const uint8_t *saved,
                                  size_t saved_bytes,
                                  struct LockstepGpu **gpu,
                                  char *message,
                                  size_t message_bytes);

// Saves everything, also in the middle of kernels. The bytes stay until the next time, or until the GPU is destroyed.
//
// # Safety
// The pointers are good.
enum LockstepStatus lockstep_save(struct LockstepGpu *gpu,
                                  const uint8_t **saved,
                                  size_t *saved_bytes);

// Gives a GPU back; null is nothing to give.
//
// # Safety
// The GPU is from this library and is not used again.
void lockstep_destroy(struct LockstepGpu *gpu);

// Why the last call on a GPU failed; it stays until the next failure.
//
// # Safety
// The pointer is null or a GPU of this library.
const char *lockstep_message(const struct LockstepGpu *gpu);

// Sets who is told of launches that ended; null for nobody. It may call everything but `lockstep_destroy`.
//
// # Safety
// The pointers are good for as long as the GPU lives.
enum LockstepStatus lockstep_on_kernel_end(struct LockstepGpu *gpu,
                                           LockstepKernelEnd kernel_end,
                                           void *context);

// Sets who is told of blocks that ended; null for nobody. It may call everything but `lockstep_destroy`.
//
// # Safety
// The pointers are good for as long as the GPU lives.
enum LockstepStatus lockstep_on_block_end(struct LockstepGpu *gpu,
                                          LockstepBlockEnd block_end,
                                          void *context);

// Sets who models the memory behind the L1 caches, while no kernel runs; null for the GPU's own L2 and DRAM. Every
// request that leaves an L1 is told then, and is answered when `lockstep_complete` says so; values stay those of the
// GPU, and code is fetched inside it. It may call everything but `lockstep_destroy`, and may complete the request at
// once for a later time. A GPU that was loaded has the requests it was saved with.
//
// # Safety
// The pointers are good for as long as the GPU lives.
enum LockstepStatus lockstep_on_memory_request(struct LockstepGpu *gpu,
                                               LockstepMemoryListener listener,
                                               void *context);

// A request is complete at a time, in femtoseconds, or now if that has passed. Then the answer begins its way to the
// SM, and a kernel whose writes are all complete can end.
//
// # Safety
// The pointer is good.
enum LockstepStatus lockstep_complete(struct LockstepGpu *gpu,
                                      uint64_t request,
                                      uint64_t time);

// Lets time pass until a boundary of epochs that is not before `until`, in femtoseconds since the beginning.
//
// # Safety
// The pointer is good, and so is who is told of what happens.
enum LockstepStatus lockstep_advance(struct LockstepGpu *gpu,
                                     uint64_t until);

// Lets time pass until every launch has ended. With memory outside, it must be who is told of requests that
// completes them.
//
// # Safety
// The pointer is good, and so is who is told of what happens.
enum LockstepStatus lockstep_finish(struct LockstepGpu *gpu);

// Makes an idle GPU at time zero that plays calls. With a `listener`, what is behind its L1 caches is outside, as
// after `lockstep_on_memory_request`; null for the GPU's own L2 and DRAM. `kernel_end`, if it is not null, is told of
// every launch that ended, in the order of calls. On failure `message`, if it is not null, gets the reason, cut to
// `message_bytes`.
//
// # Safety
// The pointers are good, those in `options` too, and what is called for as long as the playback lives.
enum LockstepStatus lockstep_playback_create(const struct LockstepOptions *options,
                                             LockstepMemoryListener listener,
                                             LockstepKernelEnd kernel_end,
                                             void *context,
                                             struct LockstepPlayback **playback,
                                             char *message,
                                             size_t message_bytes);

// Gives it the next entry of a record, when one is wanted.
//
// # Safety
// The pointers are good; `entry` for `entry_bytes` bytes.
enum LockstepStatus lockstep_playback_enter(struct LockstepPlayback *playback,
                                            const uint8_t *entry,
                                            size_t entry_bytes);

// Lets time pass until a boundary of epochs that is not before `until`, in femtoseconds since the beginning, or until
// all that was entered is done; `progress` says how far it came. With memory outside and `until` at its greatest, who
// is told of requests completes them: it is refused where nothing happens before one is complete.
//
// # Safety
// The pointers are good, and so is who is told of what happens.
enum LockstepStatus lockstep_playback_advance(struct LockstepPlayback *playback,
                                              uint64_t until,
                                              struct LockstepProgress *progress);

// A request is complete at a time, in femtoseconds, or now if that has passed.
//
// # Safety
// The pointer is good.
enum LockstepStatus lockstep_playback_complete(struct LockstepPlayback *playback,
                                               uint64_t request,
                                               uint64_t time);

// A counter of a launch that has ended, by its name in `kernels.csv`.
//
// # Safety
// The pointers are good.
enum LockstepStatus lockstep_playback_counter(struct LockstepPlayback *playback,
                                              uint32_t launch,
                                              const char *name,
                                              uint64_t *value);

// The (mangled) name of the kernel of a launch that has ended, with a zero behind it.
//
// # Safety
// The pointers are good; `name` may be written for `name_bytes` bytes.
enum LockstepStatus lockstep_playback_kernel(struct LockstepPlayback *playback,
                                             uint32_t launch,
                                             char *name,
                                             size_t name_bytes);

// Ends it where it stands, before statistics and digest are read. It fails if a kernel failed, or where the program
// was answered otherwise or read other values when its calls were recorded.
//
// # Safety
// The pointer is good.
enum LockstepStatus lockstep_playback_finish(struct LockstepPlayback *playback);

// Hands every statistic of every component to a visitor, in their order, once it is finished.
//
// # Safety
// The pointers are good.
enum LockstepStatus lockstep_playback_statistics(struct LockstepPlayback *playback,
                                                 LockstepVisitor visitor,
                                                 void *context);

// Writes one hash of everything that was simulated, the digest of `lockstep run`: 64 hexadecimal digits and a zero,
// into at least 65 bytes, once it is finished.
//
// # Safety
// The pointers are good; `digest` may be written for `digest_bytes` bytes.
enum LockstepStatus lockstep_playback_digest(struct LockstepPlayback *playback,
                                             char *digest,
                                             size_t digest_bytes);

// Why the last call on a playback failed; it stays until the next failure.
//
// # Safety
// The pointer is null or a playback of this library.
const char *lockstep_playback_message(const struct LockstepPlayback *playback);

// Gives a playback back, also one that goes on; null is nothing to give.
//
// # Safety
// The playback is from this library and is not used again.
void lockstep_playback_destroy(struct LockstepPlayback *playback);

// Opens a record. On failure `message`, if it is not null, gets the reason, cut to `message_bytes`.
//
// # Safety
// The pointers are good.
enum LockstepStatus lockstep_record_open(const char *path,
                                         struct LockstepRecord **record,
                                         char *message,
                                         size_t message_bytes);

// Reads the next entry; 0 bytes after the last. The bytes stay until the next call.
//
// # Safety
// The pointers are good.
enum LockstepStatus lockstep_record_next(struct LockstepRecord *record,
                                         const uint8_t **entry,
                                         size_t *entry_bytes);

// Why the last call on a record failed; it stays until the next failure.
//
// # Safety
// The pointer is null or a record of this library.
const char *lockstep_record_message(const struct LockstepRecord *record);

// Closes a record; null is nothing to close.
//
// # Safety
// The record is from this library and is not used again.
void lockstep_record_close(struct LockstepRecord *record);

// The time at which the GPU stands, in femtoseconds since the beginning.
//
// # Safety
// The pointers are good.
enum LockstepStatus lockstep_now(struct LockstepGpu *gpu, uint64_t *now);

// Whether no kernel waits or runs: 1 or 0.
//
// # Safety
// The pointers are good.
enum LockstepStatus lockstep_is_idle(struct LockstepGpu *gpu, uint32_t *idle);

// A counter of a launch that has ended, by its name in `kernels.csv` (`lockstep counters` lists them).
//
// # Safety
// The pointers are good.
enum LockstepStatus lockstep_counter(struct LockstepGpu *gpu,
                                     uint32_t launch,
                                     const char *name,
                                     uint64_t *value);

// Hands every statistic of every component to a visitor, in their order. It may call everything but
// `lockstep_destroy`.
//
// # Safety
// The pointers are good.
enum LockstepStatus lockstep_statistics(struct LockstepGpu *gpu,
                                        LockstepVisitor visitor,
                                        void *context);

// Writes one hash of everything that was simulated: 64 hexadecimal digits and a zero, into at least 65 bytes.
//
// # Safety
// The pointers are good; `digest` may be written for `digest_bytes` bytes.
enum LockstepStatus lockstep_digest(struct LockstepGpu *gpu,
                                    char *digest,
                                    size_t digest_bytes);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LOCKSTEP_H */
