//! What one simulated GPU is: the sections of a GPU file, as typed structs.
//!
//! The hardware crate reads these; the numbers live in `configs/gpus/*.toml`, each with its
//! source. A duration in cycles counts cycles of the SM clock unless its sentence says
//! otherwise. Latencies of links are one way and include the fixed pipeline stages at both
//! ends: they are the lookahead of the engine, so the epoch follows from them.
//!
//! Start reading at [`GpuConfig`]; [`GpuConfig::check`] refuses what cannot be built.

use crate::{ComputeCapability, ConfigError, UvmConfig};
use lockstep_units::{Bandwidth, Bytes, BytesPerCycle, Cycles, Duration, Hertz};
use serde::{Deserialize, Serialize};

/// One simulated GPU and the host it is attached to.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GpuConfig {
    /// The chip as a whole: name, clocks, memory size.
    pub device: DeviceConfig,
    /// One streaming multiprocessor.
    pub sm: SmConfig,
    /// The data cache of one SM.
    pub l1: L1Config,
    /// The cache shared by all SMs, in slices.
    pub l2: L2Config,
    /// The network between SMs and L2 slices.
    pub interconnect: InterconnectConfig,
    /// The memory behind the L2 slices.
    pub dram: DramConfig,
    /// How blocks reach SMs.
    pub dispatch: DispatchConfig,
    /// What a kernel launch costs on the device.
    pub launch: LaunchConfig,
    /// What calls cost on the host.
    pub host: HostConfig,
    /// The engines and the bus that move data between host and device.
    pub copy: CopyConfig,
    /// Managed memory: translation, faults, migration.
    #[serde(default)]
    pub uvm: UvmConfig,
}

/// The chip as a whole.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DeviceConfig {
    /// The name that a program reads.
    pub name: String,
    /// Instruction set and feature level.
    pub compute_capability: ComputeCapability,
    /// Streaming multiprocessors that are enabled.
    pub sms: u32,
    /// Graphics processing clusters; a thread-block cluster stays inside one.
    pub gpcs: u32,
    /// Pairs of SMs of each GPC. SMs are numbered in rounds: a pair of each GPC that has one left. Beyond
    /// the list all have the same number.
    #[serde(default)]
    pub gpc_pairs: Vec<u32>,
    /// The GPC of each pair of SMs, where that is known one by one; pairs that it does not name are as above.
    #[serde(default)]
    pub gpc_of_pair: Vec<u32>,
    /// Clock of SMs.
    pub clock: Hertz,
    /// By how much the timer of nanoseconds advances that programs read (`%globaltimer`): whole
    /// nanoseconds, 1 ns for as fine as it is written.
    #[serde(default = "one_nanosecond")]
    pub timer_step: Duration,
    /// Memory that a program can see and allocate from.
    pub memory: Bytes,
    /// Part of `memory` that the driver keeps for a context.
    pub reserved_memory: Bytes,
    /// Clock of the memory interface as a program reads it; the data rate is twice this.
    pub memory_clock: Hertz,
    /// Width of the memory interface in bits.
    pub memory_bus_bits: u32,
    /// Single to double precision throughput, as a program reads it.
    pub single_to_double_ratio: u32,
    /// Whether memory errors are corrected, as a program reads it.
    pub ecc: bool,
}

/// One streaming multiprocessor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SmConfig {
    /// Sub-cores, each with a scheduler; warp `w` lives on sub-core `w mod sub-cores`.
    pub sub_cores: u32,
    /// Warps resident at a time.
    pub warps: u32,
    /// Blocks resident at a time.
    pub blocks: u32,
    /// 32-bit registers.
    pub registers: u32,
    /// Registers are given to a warp in multiples of this many.
    pub register_unit: u32,
    /// Most registers that a thread can have.
    pub registers_per_thread: u32,
    /// Memory that L1 and shared memory divide between them.
    pub unified_memory: Bytes,
    /// Sizes of shared memory that the division offers, ascending.
    pub shared_carveouts: Vec<Bytes>,
    /// Shared memory of a block without asking for more.
    pub shared_per_block: Bytes,
    /// Shared memory of a block that opted in.
    pub shared_per_block_optin: Bytes,
    /// Shared memory that the system keeps in each block.
    pub shared_reserved: Bytes,
    /// Shared memory is given to a block in multiples of this.
    pub shared_unit: Bytes,
    /// Banks of shared memory, 4 bytes wide each.
    pub shared_banks: u32,
    /// Warp scheduler by name.
    pub scheduler: String,
    /// Whether sub-cores share one double-precision unit; its interval is then that of the SM.
    #[serde(default)]
    pub shared_double: bool,
    /// Instruction fetch.
    pub front_end: FrontEndConfig,
    /// The register file of a sub-core.
    pub register_file: RegisterFileConfig,
    /// The way of memory instructions through the SM.
    pub load_store: LoadStoreConfig,
    /// From issue to the issue of a dependent instruction, by class.
    pub latency: LatencyConfig,
    /// Cycles that one warp instruction occupies its unit in a sub-core, by class.
    pub interval: IntervalConfig,
}

/// Instruction fetch: a small cache a sub-core, a larger one an SM, L2 behind them. The caches
/// are empty when a kernel comes to an SM.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FrontEndConfig {
    /// Instruction cache of a sub-core; 0 makes instruction fetch free.
    pub l0: Bytes,
    /// Instruction cache of an SM.
    pub l1: Bytes,
    /// Bytes of a line of both.
    pub line: Bytes,
    /// From a miss in the sub-core's cache to its instruction, if the SM's cache has it.
    pub l1_latency: Cycles,
    /// Lines that a stream buffer runs ahead of the last miss.
    pub prefetch: u32,
    /// From the first block of a launch on an SM to the first line of its code, if no launch
    /// brought it before.
    pub launch_code: Cycles,
    /// Between two lines of it.
    pub launch_line: Cycles,
    /// Constants that an SM keeps close; 0 makes reading them free.
    pub constants: Bytes,
    /// Bytes of a line of constants.
    pub constant_line: Bytes,
    /// What a constant that is not close costs.
    pub constant_miss: Cycles,
    /// The same for one that a launch uses for the first time, other than a parameter.
    pub constant_first: Cycles,
}

/// The register file of a sub-core.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RegisterFileConfig {
    /// Banks, each with one read port; 0 for ports without conflicts.
    pub banks: u32,
    /// Cycles in which an instruction can read its operands without holding up the next.
    pub read_window: Cycles,
}

/// The way of memory instructions through the SM.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LoadStoreConfig {
    /// Memory instructions that a sub-core has issued and the SM has not yet taken.
    pub queue: u32,
    /// From issue of a load until its address registers may be written.
    pub load_operands: Cycles,
    /// From issue of a store until its registers may be written.
    pub store_operands: Cycles,
    /// What every further 32-bit word of a lane adds to a load from L1.
    pub wide_global: Cycles,
    /// What a load of 128 bits a lane adds to a load from shared memory.
    pub wide_shared: Cycles,
    /// Cycles for which a fence holds up the pipe, besides what is in it.
    pub fence: Cycles,
    /// Cycles that one lane of a shared-memory atomic waits for another that wants the same word; twice
    /// that if it compares before it writes.
    pub shared_atomic_conflict: Cycles,
}

/// From issue to the issue of a dependent instruction; the names are those of the classes in
/// `lockstep_isa`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LatencyConfig {
    /// Integer, logic, moves.
    pub integer: Cycles,
    /// Single precision and 32-bit multiply-add.
    pub float: Cycles,
    /// Multiply-add of 32 x 32 to 64 bits.
    pub wide_multiply: Cycles,
    /// For how long an integer multiplication with a result of 64 bits holds up its warp, if the
    /// compiler's stall count is less.
    pub wide_multiply_stall: Cycles,
    /// Double precision.
    pub double: Cycles,
    /// Pairs of half precision.
    pub half: Cycles,
    /// Transcendental functions.
    pub transcendental: Cycles,
    /// Conversions, population counts, leading zeros.
    pub conversion: Cycles,
    /// Predicates and comparisons, until a guard or a branch can use them.
    pub compare: Cycles,
    /// Votes.
    pub vote: Cycles,
    /// Shuffles.
    pub shuffle: Cycles,
    /// How much longer those take that also say, as a predicate, whether there was such a lane.
    #[serde(default)]
    pub shuffle_predicate: Cycles,
    /// Reductions over a warp.
    pub warp_reduce: Cycles,
    /// Matches over a warp.
    #[serde(rename = "match")]
    pub matching: Cycles,
    /// The uniform datapath.
    pub uniform: Cycles,
    /// Reading special registers.
    pub special_register: Cycles,
    /// Matrix multiply with a short chain (1688).
    pub matrix_short: Cycles,
    /// Matrix multiply with a long chain (16816).
    pub matrix_long: Cycles,
    /// Double-precision matrix multiply.
    pub matrix_double: Cycles,
    /// Branches and calls that are taken, until the next instruction of the warp.
    pub branch: Cycles,
    /// The same if the target is in a register: returns and calls of pointers.
    pub indirect: Cycles,
    /// A branch that only some lanes take, until those that go first issue again.
    pub divergence: Cycles,
    /// Lanes that wait for others, leave or end, until the others issue.
    pub lane_switch: Cycles,
    /// A fence for the GPU with nothing to wait for.
    pub fence_gpu: Cycles,
    /// A fence for the system with nothing to wait for.
    pub fence_system: Cycles,
    /// A block barrier with one warp, from arriving to going on.
    pub barrier: Cycles,
    /// What each further warp adds to a block barrier.
    pub barrier_per_warp: Cycles,
    /// Loads from shared memory without conflict.
    pub shared: Cycles,
    /// Atomics on shared memory without conflict.
    pub shared_atomic: Cycles,
    /// The same if it compares before it writes, or if it is on 64 bits; each makes it longer.
    #[serde(default)]
    pub shared_swap: Cycles,
    /// Loads from constant memory that hit.
    pub constant: Cycles,
}

/// Cycles that one warp instruction occupies its unit in a sub-core; the names are those of the
/// units in `lockstep_isa`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IntervalConfig {
    /// Integer and logic.
    pub alu: Cycles,
    /// Single-precision multiply-add.
    pub fma: Cycles,
    /// Integer multiply-add, which shares that unit.
    pub integer_multiply: Cycles,
    /// Double precision.
    pub double: Cycles,
    /// Pairs of half precision.
    pub half: Cycles,
    /// Transcendental functions and conversions.
    pub transcendental: Cycles,
    /// Population counts and leading zeros, which share that unit.
    pub population: Cycles,
    /// The uniform datapath.
    pub uniform: Cycles,
    /// Matrix multiply of 16 x 8 x 16 half-precision elements; larger ones in proportion.
    pub tensor: Cycles,
    /// Matrix multiply of 16 x 8 x 8 half-precision elements, and smaller ones.
    pub tensor_short: Cycles,
    /// Double-precision matrix multiply of 8 x 8 x 4.
    pub tensor_double: Cycles,
    /// Branches.
    pub branch: Cycles,
    /// Address generation and all memory.
    pub load_store: Cycles,
    /// Texture.
    pub texture: Cycles,
    /// Barriers, special registers, the rest.
    pub miscellaneous: Cycles,
}

/// The data cache of one SM. Its size is what shared memory leaves of the unified memory.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct L1Config {
    /// Bytes of a tag.
    pub line: Bytes,
    /// Bytes that are fetched and counted.
    pub sector: Bytes,
    /// Sets; their ways follow from the size that shared memory leaves.
    pub sets: u32,
    /// What of that size holds no lines.
    #[serde(default)]
    pub reserved: Bytes,
    /// Lines of a set that are drawn at random, of which the one used longest ago makes room; with 0, the one
    /// of all that was used longest ago does.
    #[serde(default)]
    pub drawn: u32,
    /// From issue of a load of 32 bits a lane that hits to the issue of a dependent instruction.
    pub hit_latency: Cycles,
    /// Lines whose tags are looked up in a cycle.
    pub lines_per_cycle: u32,
    /// Bytes that hits deliver in a cycle.
    pub bytes_per_cycle: BytesPerCycle,
    /// Bytes that stores pass on in a cycle.
    pub store_bytes_per_cycle: BytesPerCycle,
    /// Misses that can be outstanding, in sectors.
    pub outstanding: u32,
    /// How long a store joins one before it that went to the same lines.
    pub join: Cycles,
    /// Lines that stores can have on their way out of the SM.
    #[serde(default = "many_lines")]
    pub store_lines: u32,
}

/// The cache shared by all SMs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct L2Config {
    /// Data held by all slices together.
    pub capacity: Bytes,
    /// Slices; a line belongs to one by the hash of its address.
    pub slices: u32,
    /// Neighbouring bytes that lie on the same few slices; a power of two, a line at least.
    pub region: Bytes,
    /// On how many slices they lie; the number of slices is a multiple.
    pub region_slices: u32,
    /// Bytes after which the next of these slices has its turn; a power of two, a line at least.
    pub piece: Bytes,
    /// Halves of the cache; a slice in the other half is farther away.
    pub partitions: u32,
    /// GPCs that lie at the first partition, where there are two; without the list, the first half of
    /// them.
    #[serde(default)]
    pub first_partition: Vec<u32>,
    /// Bytes of a tag.
    pub line: Bytes,
    /// Bytes that are fetched and counted.
    pub sector: Bytes,
    /// Lines of a set.
    pub ways: u32,
    /// Clock of slices and interconnect.
    pub clock: Hertz,
    /// Inside a slice, from accepting a request to answering a hit, in SM cycles.
    pub hit_latency: Cycles,
    /// Inside a slice, from accepting an atomic to its result, in SM cycles.
    pub atomic_latency: Cycles,
    /// Extra way to a slice in the other half and back, in SM cycles.
    pub far_latency: Cycles,
    /// Bytes that a slice delivers in one of its cycles.
    pub bytes_per_cycle: BytesPerCycle,
    /// How long a slice takes to read a sector and to pass it on, on average over many; not less than
    /// `bytes-per-cycle` says.
    #[serde(default)]
    pub read_sector: Duration,
    /// How long a slice takes to write a sector that comes from an SM or from DRAM.
    pub write_sector: Duration,
    /// How much longer it is busy with a request if some of its sectors are written in part.
    pub write_part: Duration,
    /// How long an atomic occupies the slice, for each sector it touches.
    pub atomic_sector: Duration,
    /// How long with the sector beside it in the same 64 bytes, if that comes along.
    pub atomic_neighbour: Duration,
    /// How long it does so for each lane, if lanes want the same word.
    pub atomic_lane: Duration,
    /// The same if the atomic before was on another line; not less than the others.
    #[serde(default)]
    pub atomic_other_line: Duration,
    /// As `atomic-lane` if they add numbers with a fraction.
    pub atomic_float_lane: Duration,
    /// Lines of a set that may be known in part, because they were written, and wait for DRAM when they
    /// are read; of older ones, SMs of the same partition read what is known. With 0 all of them wait.
    #[serde(default)]
    pub partial_lines: u32,
    /// Misses that a slice can have outstanding, in sectors.
    pub outstanding: u32,
    /// How long after a read SMs of the same GPC that want the same sectors are answered with it,
    /// in SM cycles; 0 for never.
    pub merge: Cycles,
}

/// The network between SMs and L2 slices.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct InterconnectConfig {
    /// How packets travel, by name: `crossbar`, `simple`, `mesh` or `switched`.
    #[serde(default = "crossbar")]
    pub kind: String,
    /// From an SM to a slice without contention, in SM cycles.
    pub request_latency: Cycles,
    /// From a slice to an SM without contention, in SM cycles.
    pub reply_latency: Cycles,
    /// How much longer the way between the SMs of a GPC and the slice farthest from them is than
    /// to the nearest, in SM cycles; it comes on top of the latencies.
    pub spread: Cycles,
    /// How much longer the way of the first, second, ... pair of SMs of a GPC is than that of most, in
    /// SM cycles; 0 for pairs that are not named.
    #[serde(default)]
    pub pair_ways: Vec<Cycles>,
    /// Bytes that an SM sends in a cycle.
    pub request_bytes_per_cycle: BytesPerCycle,
    /// Bytes that an SM receives in a cycle.
    pub reply_bytes_per_cycle: BytesPerCycle,
    /// Bytes around the payload of every packet.
    pub header: Bytes,
    /// What an atomic takes of the way from an SM for each sector, as bytes.
    pub atomic: Bytes,
    /// What it takes for each lane.
    pub atomic_lane: Bytes,
    /// The routers of `mesh` and `switched`.
    #[serde(default)]
    pub network: NetworkConfig,
}

fn many_lines() -> u32 {
    32
}

fn one_nanosecond() -> Duration {
    Duration::nanoseconds(1)
}

fn crossbar() -> String {
    "crossbar".into()
}

impl InterconnectConfig {
    /// Whether packets pass routers.
    pub fn has_networks(&self) -> bool {
        self.kind == "mesh" || self.kind == "switched"
    }
}

/// The routers of the interconnects `mesh` and `switched`. There they stand for the bandwidths and
/// the spread of a crossbar; the latencies, half before the routers and half behind them, stay.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NetworkConfig {
    /// Clock of the routers.
    pub clock: Hertz,
    /// Bytes that cross a port in one of its cycles; packets are cut into as many as they need.
    pub flit: Bytes,
    /// Flits that the queue of an input from another router holds.
    pub queue: u32,
    /// Cycles of the routers' clock that a flit stays in each router.
    pub router: Cycles,
    /// Routers of a row of `mesh`; 0 makes it as square as can be.
    pub columns: u32,
    /// Ports by which an SM or a slice sends, a flit a cycle each.
    pub input_ports: u32,
    /// Ports by which an SM or a slice receives, a flit a cycle each.
    pub output_ports: u32,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        let clock = "1.2 GHz".parse().expect("a frequency");
        Self {
            clock,
            flit: Bytes(40),
            queue: 8,
            router: Cycles(2),
            columns: 0,
            input_ports: 2,
            output_ports: 1,
        }
    }
}

/// The memory behind the L2 slices.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DramConfig {
    /// Technology, for people.
    pub kind: String,
    /// Independent channels; slices are divided evenly between them.
    pub channels: u32,
    /// Clock of a channel.
    pub clock: Hertz,
    /// Bytes that a channel moves in one of its cycles.
    pub bytes_per_cycle: BytesPerCycle,
    /// Bytes of one access.
    pub burst: Bytes,
    /// Model of a channel, by name.
    pub back_end: String,
    /// From a miss in the slice to its data, without contention and with the bank's row closed, in
    /// SM cycles.
    pub latency: Cycles,
    /// Share of the peak that a stream of accesses in one direction reaches, in percent.
    pub efficiency: u32,
    /// The same for what is written; 0 if it is no other.
    #[serde(default)]
    pub write_efficiency: u32,
    /// What turning the channel from reads to writes or back costs a burst, on average.
    pub turnaround: Duration,
    /// How long a refresh of a channel takes in the back end `simple`.
    pub refresh: Duration,
    /// Between the beginnings of two of them; 0 for none.
    pub refresh_interval: Duration,
    /// Groups of channels that are refreshed together, as those of a stack are; 0 if each channel is
    /// refreshed by itself.
    pub refresh_groups: u32,
    /// Memory of a group that is refreshed together: banks take turns, and so much lies in the same
    /// bank of all channels. 0 if a refresh stops all banks.
    #[serde(default)]
    pub refresh_span: Bytes,
    /// Parts of a channel that are refreshed apart. With two, the halves of a line lie in
    /// different ones, and the bus serves one part while the other is refreshed.
    pub pseudo_channels: u32,
    /// Between two rows that are opened behind a slice, whatever their banks.
    pub row_interval: Duration,
    /// Banks of the part of memory that is behind a slice.
    pub banks: u32,
    /// Bytes of an open row.
    pub row: Bytes,
    /// What an access saves if its row is open.
    pub row_hit_saves: Duration,
    /// Between two rows of one bank.
    pub row_cycle: Duration,
    /// Timing rows of the back end `timing`, by name.
    pub timing: String,
}

/// How blocks reach SMs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DispatchConfig {
    /// From the dispatcher to an SM and back, each, in SM cycles.
    pub latency: Cycles,
    /// Between two blocks sent out.
    pub interval: Duration,
    /// Between the starts of two warps on an SM, in SM cycles.
    pub warp_interval: Cycles,
    /// Kernels resident on the device at a time.
    pub concurrent_kernels: u32,
    /// Which SM receives the next block, by name.
    pub policy: String,
    /// SMs that receive blocks before others as free as they are, in this order; the rest follow,
    /// one of every pair first. Without any, the lowest number is first. Numbers that no SM has are
    /// passed over.
    #[serde(default)]
    pub first: Vec<u32>,
}

/// What a kernel launch costs on the device.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LaunchConfig {
    /// From reaching the head of its queue to the first block sent, in SM cycles.
    pub start: Cycles,
    /// How much of that passes before the kernel before it in the queue ends, if it is there by
    /// then, in SM cycles.
    #[serde(default)]
    pub overlap: Cycles,
    /// From the end of the last block to the kernel being complete, in SM cycles.
    pub finish: Cycles,
    /// How much longer that takes for each SM on which blocks used memory.
    pub finish_sm: Duration,
    /// From the end of the work before an event in its queue to the time that the event takes down,
    /// when what follows in the queue begins.
    #[serde(default)]
    pub event: Duration,
    /// Sectors of L2 that GPCs look up to launch a kernel, and of these across its halves.
    pub l2_sectors: u32,
    /// Sectors of L2 that others than GPCs look up around a launch: what starts kernels, the host.
    #[serde(default)]
    pub other_sectors: u32,
    /// While a kernel runs, others look up a sector each time this passes, in SM cycles; nothing
    /// with 0.
    #[serde(default)]
    pub other_interval: Cycles,
    /// Sectors of L2 that the end of a launch looks up for every SM and slice that it used.
    pub contact_sectors: u32,
    /// Bytes that a launch reads from DRAM if it finds caches empty, besides its code.
    pub dram_bytes: Bytes,
    /// Bytes behind its code that the first launch of a kernel reads along.
    pub code_ahead: Bytes,
    /// Most bytes of parameters.
    pub parameters: Bytes,
    /// A kernel that runs for longer is taken to hang, in SM cycles.
    pub watchdog: Cycles,
}

/// What calls cost on the host, in simulated time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostConfig {
    /// A call that touches no device work.
    pub call: Duration,
    /// Issuing a kernel.
    pub launch: Duration,
    /// Issuing a kernel after a pause, besides: what the host needs for it has left its caches.
    #[serde(default)]
    pub launch_cold: Duration,
    /// How long no kernel was issued for that.
    #[serde(default)]
    pub launch_cold_after: Duration,
    /// Issuing a copy or a memset.
    pub copy: Duration,
    /// Allocating or freeing memory.
    pub allocate: Duration,
    /// Waiting: from the end of the work to the return of the call.
    pub synchronize: Duration,
    /// How far a query of unfinished work lets the device advance.
    pub query: Duration,
    /// Loading an image.
    pub load: Duration,
    /// The host as a machine, through which commands and data then go.
    #[serde(default)]
    pub machine: HostMachineConfig,
}

/// The host as a machine: what takes time on the way of commands and data between host and GPU. With
/// the kind `none` the figures of `host` and `copy` stand for all of it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct HostMachineConfig {
    /// `none` or `machine`.
    pub kind: String,
    /// Cores that ask for data.
    pub cores: u32,
    /// Their clock.
    pub clock: Hertz,
    /// Requests that a core makes in a cycle.
    pub requests_per_cycle: u32,
    /// Bytes of a request.
    pub request: Bytes,
    /// Transfers of memory in a second, as in DDR4-2666.
    pub ddr_clock: Hertz,
    /// Bytes of a transfer.
    pub ddr_bytes_per_cycle: BytesPerCycle,
    /// Memory that pinned and managed allocations can have.
    pub ddr_capacity: Bytes,
    /// Clock of the mesh between cores, memory and links.
    pub mesh_clock: Hertz,
    /// Bytes that a port of the mesh passes on in one of its cycles.
    pub mesh_bytes_per_cycle: BytesPerCycle,
    /// The way through the mesh.
    pub mesh_latency: Duration,
    /// Ports by which data from the GPU come into the mesh.
    pub mesh_input_ports: u32,
    /// Ports by which data for the GPU leave it.
    pub mesh_output_ports: u32,
    /// Data move in pieces of this size.
    pub page: Bytes,
    /// The link between host and GPU, in each direction.
    pub link: Bandwidth,
    /// From one end of the link for data to the other.
    pub data_latency: Duration,
    /// From one end of the link for commands to the other.
    pub command_latency: Duration,
}

impl HostMachineConfig {
    /// Whether commands and data go through it.
    pub fn is_modelled(&self) -> bool {
        self.kind == "machine"
    }
}

impl Default for HostMachineConfig {
    /// The machine of the SST-GPU report: its listing 1, and its table 2 for what is not there.
    fn default() -> Self {
        const FINE: &str = "a value that parses";
        Self {
            kind: "none".into(),
            cores: 1,
            clock: "2660 MHz".parse().expect(FINE),
            requests_per_cycle: 3,
            request: Bytes(64),
            ddr_clock: "2666 MHz".parse().expect(FINE),
            ddr_bytes_per_cycle: "8 B/cycle".parse().expect(FINE),
            ddr_capacity: "16384 MiB".parse().expect(FINE),
            mesh_clock: "800 MHz".parse().expect(FINE),
            mesh_bytes_per_cycle: "120 B/cycle".parse().expect(FINE),
            mesh_latency: "300 ps".parse().expect(FINE),
            mesh_input_ports: 1,
            mesh_output_ports: 1,
            page: Bytes(4096),
            link: "16 GB/s".parse().expect(FINE),
            data_latency: "23840 ps".parse().expect(FINE),
            command_latency: "23840 ps".parse().expect(FINE),
        }
    }
}

/// The engines and the bus that move data between host and device.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CopyConfig {
    /// Copies in flight at a time.
    pub engines: u32,
    /// From issue to the first byte.
    pub latency: Duration,
    /// From and to pinned memory.
    pub pinned: Bandwidth,
    /// From and to pageable memory.
    pub pageable: Bandwidth,
    /// Within device memory, each byte counted once, and for memset.
    pub device: Bandwidth,
}

impl GpuConfig {
    /// Refuses values that are each fine and impossible together, or that no model can take.
    ///
    /// # Errors
    /// The first key that is wrong, with its value and the reason.
    pub fn check(&self) -> Result<(), ConfigError> {
        let network = &self.interconnect.network;
        let machine = &self.host.machine;
        if !["none", "machine"].contains(&machine.kind.as_str()) {
            let known = ["none", "machine"].into_iter();
            return Err(ConfigError::unknown_policy(
                "host machine",
                &machine.kind,
                known,
            ));
        }
        let positive = [
            ("device.sms", u64::from(self.device.sms)),
            ("device.memory", self.device.memory.0),
            ("sm.sub-cores", u64::from(self.sm.sub_cores)),
            ("sm.warps", u64::from(self.sm.warps)),
            ("sm.blocks", u64::from(self.sm.blocks)),
            ("sm.registers", u64::from(self.sm.registers)),
            ("sm.register-unit", u64::from(self.sm.register_unit)),
            ("sm.shared-unit", self.sm.shared_unit.0),
            ("sm.shared-banks", u64::from(self.sm.shared_banks)),
            ("l1.sets", u64::from(self.l1.sets)),
            ("l2.slices", u64::from(self.l2.slices)),
            ("l2.partitions", u64::from(self.l2.partitions)),
            ("l2.ways", u64::from(self.l2.ways)),
            ("l1.lines-per-cycle", u64::from(self.l1.lines_per_cycle)),
            ("l1.store-lines", u64::from(self.l1.store_lines)),
            ("sm.load-store.queue", u64::from(self.sm.load_store.queue)),
            ("sm.front-end.line", self.sm.front_end.line.0),
            (
                "sm.front-end.constant-line",
                self.sm.front_end.constant_line.0,
            ),
            ("dram.banks", u64::from(self.dram.banks)),
            ("dram.row", self.dram.row.0),
            ("dram.burst", self.dram.burst.0),
            ("dram.efficiency", u64::from(self.dram.efficiency)),
            ("dram.channels", u64::from(self.dram.channels)),
            (
                "dispatch.concurrent-kernels",
                u64::from(self.dispatch.concurrent_kernels),
            ),
            ("copy.engines", u64::from(self.copy.engines)),
            ("host.machine.cores", u64::from(machine.cores)),
            (
                "host.machine.requests-per-cycle",
                u64::from(machine.requests_per_cycle),
            ),
            ("host.machine.request", machine.request.0),
            ("host.machine.ddr-capacity", machine.ddr_capacity.0),
            (
                "host.machine.mesh-input-ports",
                u64::from(machine.mesh_input_ports),
            ),
            (
                "host.machine.mesh-output-ports",
                u64::from(machine.mesh_output_ports),
            ),
            ("host.machine.page", machine.page.0),
            ("interconnect.network.flit", network.flit.0),
            ("interconnect.network.queue", u64::from(network.queue)),
            ("interconnect.network.router", network.router.0),
            (
                "interconnect.network.input-ports",
                u64::from(network.input_ports),
            ),
            (
                "interconnect.network.output-ports",
                u64::from(network.output_ports),
            ),
            ("host.query", self.host.query.0),
        ];
        for (key, value) in positive {
            if value == 0 {
                return Err(ConfigError::impossible(key, value, "it must not be 0"));
            }
        }
        self.check_sizes()?;
        self.check_first()?;
        self.uvm.check()?;
        self.check_relations()
    }

    fn check_first(&self) -> Result<(), ConfigError> {
        let mut seen = std::collections::BTreeSet::new();
        for sm in &self.dispatch.first {
            let key = "dispatch.first";
            if !seen.insert(sm) {
                return Err(ConfigError::impossible(key, sm, "it is named twice"));
            }
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), ConfigError> {
        let network = &self.interconnect.network;
        let machine = &self.host.machine;
        // Pages of a few bytes would take longer to simulate than to move.
        if machine.page.0 < 256 {
            return Err(ConfigError::impossible(
                "host.machine.page",
                machine.page.0,
                "it must have at least 256 bytes",
            ));
        }
        let bounded = [
            ("host.machine.cores", u64::from(machine.cores), 4096),
            (
                "host.machine.requests-per-cycle",
                u64::from(machine.requests_per_cycle),
                4096,
            ),
            ("host.machine.page", machine.page.0, 1 << 30),
            ("interconnect.network.flit", network.flit.0, 1 << 16),
            (
                "interconnect.network.queue",
                u64::from(network.queue),
                1 << 16,
            ),
            ("interconnect.network.router", network.router.0, 1 << 16),
            (
                "interconnect.network.columns",
                u64::from(network.columns),
                1 << 16,
            ),
            (
                "interconnect.network.input-ports",
                u64::from(network.input_ports),
                16,
            ),
            (
                "interconnect.network.output-ports",
                u64::from(network.output_ports),
                16,
            ),
            ("device.sms", u64::from(self.device.sms), 4096),
            ("sm.warps", u64::from(self.sm.warps), 64),
            ("sm.blocks", u64::from(self.sm.blocks), 64),
            (
                "sm.registers-per-thread",
                u64::from(self.sm.registers_per_thread),
                255,
            ),
            ("sm.unified-memory", self.sm.unified_memory.0, 1 << 24),
            ("l2.slices", u64::from(self.l2.slices), 4096),
            ("l2.capacity", self.l2.capacity.0, 1 << 30),
            ("l2.partitions", u64::from(self.l2.partitions), 64),
            ("l2.ways", u64::from(self.l2.ways), 1024),
            ("l2.partial-lines", u64::from(self.l2.partial_lines), 1024),
            ("device.gpcs", u64::from(self.device.gpcs), 4096),
            ("sm.sub-cores", u64::from(self.sm.sub_cores), 64),
            ("copy.engines", u64::from(self.copy.engines), 1024),
            ("device.memory", self.device.memory.0, 1 << 40),
            ("dram.channels", u64::from(self.dram.channels), 4096),
            ("dram.banks", u64::from(self.dram.banks), 1024),
            ("dram.efficiency", u64::from(self.dram.efficiency), 100),
            (
                "dram.write-efficiency",
                u64::from(self.dram.write_efficiency),
                100,
            ),
            ("l1.sets", u64::from(self.l1.sets), 4096),
            ("l1.drawn", u64::from(self.l1.drawn), 64),
            ("l1.store-lines", u64::from(self.l1.store_lines), 1024),
            (
                "sm.load-store.queue",
                u64::from(self.sm.load_store.queue),
                64,
            ),
            (
                "sm.register-file.banks",
                u64::from(self.sm.register_file.banks),
                4,
            ),
            (
                "sm.front-end.prefetch",
                u64::from(self.sm.front_end.prefetch),
                64,
            ),
            ("sm.front-end.l1", self.sm.front_end.l1.0, 1 << 24),
            ("sm.front-end.l0", self.sm.front_end.l0.0, 1 << 24),
            (
                "sm.front-end.constants",
                self.sm.front_end.constants.0,
                1 << 24,
            ),
        ];
        for (key, value, most) in bounded {
            if value > most {
                return Err(ConfigError::impossible(
                    key,
                    value,
                    format!("at most {most} can be simulated"),
                ));
            }
        }
        for (key, value) in [
            ("l1.line", self.l1.line.0),
            ("l1.sector", self.l1.sector.0),
            ("l2.line", self.l2.line.0),
            ("l2.sector", self.l2.sector.0),
            ("dram.burst", self.dram.burst.0),
            ("dram.row", self.dram.row.0),
            ("sm.front-end.line", self.sm.front_end.line.0),
            (
                "sm.front-end.constant-line",
                self.sm.front_end.constant_line.0,
            ),
        ] {
            if !value.is_power_of_two() {
                return Err(ConfigError::impossible(
                    key,
                    value,
                    "it must be a power of two",
                ));
            }
        }
        Ok(())
    }

    fn check_relations(&self) -> Result<(), ConfigError> {
        let sm = &self.sm;
        if let Some(pairs) = self.device.gpc_pairs.iter().find(|pairs| **pairs > 2048) {
            return Err(ConfigError::impossible(
                "device.gpc-pairs",
                pairs,
                "at most 2048 can be simulated",
            ));
        }
        if !sm.warps.is_multiple_of(sm.sub_cores) {
            return Err(ConfigError::impossible(
                "sm.warps",
                sm.warps,
                format!("it must be a multiple of `sm.sub-cores` = {}", sm.sub_cores),
            ));
        }
        if !sm.shared_carveouts.is_sorted() || sm.shared_carveouts.is_empty() {
            return Err(ConfigError::impossible(
                "sm.shared-carveouts",
                format!("{:?}", sm.shared_carveouts),
                "it must name at least one size, ascending",
            ));
        }
        let most = sm.shared_carveouts.last().map_or(0, |size| size.0);
        if sm.shared_per_block_optin.0 + sm.shared_reserved.0 > most {
            return Err(ConfigError::impossible(
                "sm.shared-per-block-optin",
                sm.shared_per_block_optin.0,
                format!("with `sm.shared-reserved` it exceeds the largest carve-out, {most} bytes"),
            ));
        }
        if most > sm.unified_memory.0 {
            return Err(ConfigError::impossible(
                "sm.unified-memory",
                sm.unified_memory.0,
                format!("the largest carve-out is {most} bytes"),
            ));
        }
        if sm.shared_per_block.0 > sm.shared_per_block_optin.0 {
            return Err(ConfigError::impossible(
                "sm.shared-per-block",
                sm.shared_per_block.0,
                "it exceeds `sm.shared-per-block-optin`",
            ));
        }
        for (key, found, modelled) in [
            ("l1.line", self.l1.line.0, 128),
            ("l2.line", self.l2.line.0, 128),
            ("l1.sector", self.l1.sector.0, 32),
            ("l2.sector", self.l2.sector.0, 32),
        ] {
            if found != modelled {
                return Err(ConfigError::impossible(
                    key,
                    found,
                    format!("it must be {modelled}: caches of other shapes are not modelled"),
                ));
            }
        }
        let per_slice = u64::from(self.l2.slices) * u64::from(self.l2.ways) * self.l2.line.0;
        if !self.l2.capacity.0.is_multiple_of(per_slice) {
            return Err(ConfigError::impossible(
                "l2.capacity",
                self.l2.capacity.0,
                format!("it is not a multiple of slices x ways x line = {per_slice} bytes"),
            ));
        }
        if !self.l2.slices.is_multiple_of(self.dram.channels)
            && !self.dram.channels.is_multiple_of(self.l2.slices)
        {
            return Err(ConfigError::impossible(
                "dram.channels",
                self.dram.channels,
                format!(
                    "{} slices do not divide evenly between them",
                    self.l2.slices
                ),
            ));
        }
        let step = self.device.timer_step.0;
        let nanosecond = one_nanosecond().0;
        if step == 0 || !step.is_multiple_of(nanosecond) || step > 1_000_000 * nanosecond {
            return Err(ConfigError::impossible(
                "device.timer-step",
                self.device.timer_step,
                "it must be whole nanoseconds, at least 1 ns and at most 1 ms",
            ));
        }
        if self.device.reserved_memory.0 >= self.device.memory.0 {
            return Err(ConfigError::impossible(
                "device.reserved-memory",
                self.device.reserved_memory.0,
                "it leaves no memory to allocate",
            ));
        }
        Ok(())
    }
}
