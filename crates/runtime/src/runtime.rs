//! The state behind all calls, and the way from a request to its answer.

use crate::calls::{Annotations, Graph, GraphRun, HostViews, Polls, Sharing, Within};
use crate::context::{Context, Event, Stream};
use crate::device::{Device, Fault, KernelLaunch, KernelResult, Part};
use crate::faults::MetFault;
use crate::host::HostMachine;
use crate::memory::{Allocation, Memory};
use crate::module::{Function, LoadOptions, LoadedModule, Loader};
use crate::timeline::{Goal, Interruption, StreamKey, Timeline};
use crate::virtual_memory::VirtualMemory;
use crate::{CallResult, Piece, failure};
use lockstep_config::GpuConfig;
use lockstep_node::Topology;
use lockstep_protocol::layout::{Region, region_of};
use lockstep_protocol::{
    ContextHandle, CuResult, DeviceDescription, EventHandle, Failure, FunctionHandle, GraphHandle,
    ModuleHandle, PointerKind, Request, Response, StreamHandle, UnsupportedManner,
};
use lockstep_units::{Duration, Time};
use std::collections::BTreeMap;

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client {
    /// The connection, that is, the host thread; numbered when its first call is answered.
    pub connection: u64,
    /// The process; numbered when its first call is answered.
    pub process: u32,
}

/// A launch, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchSummary {
    /// The number of the launch, from 0.
    pub id: u64,
    /// Mangled name of the kernel.
    pub kernel: String,
    /// The device.
    pub gpu: u32,
    /// The context.
    pub context: u64,
    /// The stream, by a number of its own.
    pub stream: u64,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block in bytes, static and dynamic.
    pub shared: u64,
    /// Ranges of the program that it was made in.
    pub within: Within,
    /// What is known once it has ended.
    pub result: Option<KernelResult>,
}

impl LaunchSummary {
    /// A launch by a kernel, in the context and the stream of the launch that it goes back to.
    fn by_kernel(root: &Self, launch: &KernelLaunch, result: KernelResult) -> Self {
        Self {
            id: root.id,
            kernel: launch.kernel.clone(),
            gpu: root.gpu,
            context: root.context,
            stream: root.stream,
            grid: launch.grid,
            block: launch.block,
            registers: launch.registers,
            shared: launch.shared,
            within: root.within.clone(),
            result: Some(result),
        }
    }
}

/// A call that a program wanted and that is lacking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedCall {
    /// Its name.
    pub name: String,
    /// How the program came to it.
    pub manner: UnsupportedManner,
    /// How many processes said so.
    pub count: u64,
}

/// Calls between a refused one and the end of a program that ends because of it: some to clean up.
const CALLS_BEFORE_END: u64 = 12;

/// The call or option that failed last because it is lacking.
#[derive(Debug)]
struct LastUnsupported {
    name: String,
    manner: UnsupportedManner,
    /// Calls that the program had made by then.
    call: u64,
}

/// Everything that CUDA calls can see and change.
pub struct Runtime<D> {
    /// The first GPU of a node, with the host that it is in.
    pub(crate) config: GpuConfig,
    /// The GPUs of a node, if they are of several kinds.
    kinds: Vec<GpuConfig>,
    pub(crate) options: LoadOptions,
    pub(crate) loader: Loader,
    pub(crate) device: D,
    pub(crate) timeline: Timeline,
    /// Simulated time of the host.
    pub(crate) now: Time,
    /// When the host last launched something.
    launched: Time,
    pub(crate) polls: Polls,
    pub(crate) memory: Memory,
    pub(crate) virtual_memory: VirtualMemory,
    pub(crate) host_views: HostViews,
    /// Processes that have memory in common.
    pub(crate) sharing: Sharing,
    pub(crate) contexts: BTreeMap<ContextHandle, Context>,
    pub(crate) modules: BTreeMap<ModuleHandle, LoadedModule>,
    pub(crate) functions: BTreeMap<FunctionHandle, Function>,
    pub(crate) streams: BTreeMap<StreamHandle, Stream>,
    pub(crate) events: BTreeMap<EventHandle, Event>,
    pub(crate) graphs: BTreeMap<GraphHandle, Graph>,
    /// Launches of graphs that still need the program, by number.
    pub(crate) graph_runs: BTreeMap<u64, GraphRun>,
    pub(crate) launches: Vec<LaunchSummary>,
    launches_by_kernels: Vec<LaunchSummary>,
    unsupported: BTreeMap<(String, UnsupportedManner), u64>,
    /// The last of them that failed.
    last_unsupported: Option<LastUnsupported>,
    faults: Vec<MetFault>,
    /// What programs left when their contexts ended.
    pub(crate) leaks: Vec<(u64, u64, u64)>,
    warnings: Vec<String>,
    /// What programs say of themselves.
    pub(crate) annotations: Annotations,
    /// How code came to be.
    remarks: Vec<String>,
    dependences: Vec<String>,
    next: u64,
    stopped: bool,
    /// Addresses and sizes that the program writes once it has the answer.
    pub(crate) host_writes: Vec<(u64, u64)>,
    /// What the program copies out of the window once it has the answer.
    pub(crate) host_reads: Vec<Piece>,
    calls: u64,
}

impl<D: Device> Runtime<D> {
    /// A runtime over the hardware, with nothing in it. All GPUs are of one kind, unless it is said.
    pub fn new(config: GpuConfig, options: LoadOptions, loader: Loader, device: D) -> Self {
        Self {
            memory: Memory::new(&config, device.gpus(), |_| &config),
            virtual_memory: VirtualMemory::new(),
            host_views: HostViews::default(),
            sharing: Sharing::default(),
            timeline: Timeline::new(
                config.copy.engines,
                config.launch.event_latency,
                HostMachine::new(&config.host.machine),
            ),
            config,
            kinds: Vec::new(),
            options,
            loader,
            device,
            now: Time::ZERO,
            launched: Time::ZERO,
            polls: Polls::default(),
            contexts: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            graphs: BTreeMap::new(),
            graph_runs: BTreeMap::new(),
            launches: Vec::new(),
            launches_by_kernels: Vec::new(),
            unsupported: BTreeMap::new(),
            last_unsupported: None,
            faults: Vec::new(),
            leaks: Vec::new(),
            warnings: Vec::new(),
            annotations: Annotations::default(),
            remarks: Vec::new(),
            dependences: Vec::new(),
            next: 0,
            stopped: false,
            host_writes: Vec::new(),
            host_reads: Vec::new(),
            calls: 0,
        }
    }

    /// Lets copies between GPUs take the links of a node.
    #[must_use]
    pub fn with_links(mut self, topology: Topology) -> Self {
        self.timeline.set_links(topology);
        self
    }

    /// Lets the GPUs of each node be of these kinds, by their numbers on it. What the host does, and how it copies,
    /// follows the first.
    #[must_use]
    pub fn with_kinds(mut self, kinds: Vec<GpuConfig>) -> Self {
        self.kinds = kinds;
        self.memory = Memory::new(&self.config, self.device.gpus(), |gpu| self.gpu(gpu));
        self
    }

    /// A GPU as its file describes it.
    pub(crate) fn gpu(&self, gpu: u32) -> &GpuConfig {
        let on_node = gpu.saturating_sub(self.device.neighbours(gpu).start);
        self.kinds.get(on_node as usize).unwrap_or(&self.config)
    }

    /// The GPU of a context.
    pub(crate) fn gpu_of(&self, context: ContextHandle) -> &GpuConfig {
        let known = self.contexts.get(&context);
        known.map_or(&self.config, |context| self.gpu(context.device))
    }

    /// How images are chosen for the GPU of a context.
    pub(crate) fn load_options(&self, context: ContextHandle) -> LoadOptions {
        if self.kinds.is_empty() {
            return self.options;
        }
        let capability = self.gpu_of(context).device.compute_capability;
        LoadOptions {
            architecture: capability.architecture(),
            ..self.options
        }
    }

    /// What programs are told of the devices.
    pub fn descriptions(&self) -> Vec<DeviceDescription> {
        let describe = |gpu| {
            let neighbours = self.device.neighbours(gpu);
            let mut description = crate::describe(self.gpu(gpu), gpu, neighbours);
            if let Some(topology) = self.timeline.links() {
                crate::describe_links(&mut description, self.gpu(gpu), topology, gpu);
            }
            description
        };
        (0..self.device.gpus()).map(describe).collect()
    }

    /// A GPU in messages: by its number on its node, and by that node if there are several.
    pub(crate) fn gpu_name(&self, gpu: u32) -> String {
        let near = self.device.neighbours(gpu);
        match near.len() < self.device.gpus() as usize {
            true => format!(
                "GPU {} of node {}",
                gpu - near.start,
                near.start / near.len() as u32
            ),
            false => format!("GPU {gpu}"),
        }
    }

    /// Answers one request.
    pub fn handle(&mut self, client: Client, request: &Request) -> Response {
        if !request.is_of_library() {
            self.calls += 1;
            self.memory.begin_call(self.calls);
            self.end_polling(client);
        }
        self.annotations.called_by(client);
        self.host_writes.clear();
        self.host_reads.clear();
        let context = self.context_of(request);
        let result = match context.and_then(|context| self.sticky(context)) {
            Some(failure) if !survives_a_fault(request) => Err(failure),
            _ => self.answer(client, request),
        };
        let result = match result {
            Ok(_) if request.synchronizes() => self.flush_managed(client).and(result),
            result => result,
        };
        if let Err(failure) = &result {
            self.host_writes.clear();
            self.host_reads.clear();
            for fault in self.faults.iter_mut().filter(|_| !request.is_of_library()) {
                fault.answered(context, failure.code);
            }
        }
        self.collect();
        let sticky = context
            .and_then(|context| self.sticky(context))
            .map(|failure| failure.code);
        Response {
            output: self.device.take_output(),
            sticky,
            left_host: self.left_host(client),
            result,
        }
    }

    /// Makes freed memory illegal to touch.
    pub(crate) fn vacate(&mut self, allocation: &Allocation) {
        let (base, occupied) = (allocation.info.base, allocation.occupied);
        if allocation.info.kind == PointerKind::Managed {
            self.device.managed_unmap(base);
            self.host_views.freed(base, occupied);
        }
        self.device.unmap(base, occupied);
    }

    /// Ranges that the program writes after the last answer, before it does anything else.
    pub fn host_writes(&self) -> &[(u64, u64)] {
        &self.host_writes
    }

    /// What the program copies out of the window after the last answer, before anything else.
    pub fn host_reads(&self) -> &[Piece] {
        &self.host_reads
    }

    /// Host memory that the device sees and the program can write at any time.
    pub fn host_visible(&self) -> Vec<(u64, u64)> {
        self.memory
            .host_visible()
            .map(|allocation| (allocation.info.base, allocation.info.bytes))
            .collect()
    }

    /// Simulated time of the host.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Requests answered.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Every launch, in the order of calls.
    pub fn launches(&self) -> &[LaunchSummary] {
        &self.launches
    }

    /// Every launch by a kernel that is complete, in the order of completion. Their numbers are those of the
    /// launches that they go back to.
    pub fn launches_by_kernels(&self) -> &[LaunchSummary] {
        &self.launches_by_kernels
    }

    /// What is known of the allocation that holds an address or held it, in words.
    pub fn story_of(&self, address: u64) -> Option<String> {
        self.memory.story_inside(address)
    }

    /// Allocations that programs left when their contexts ended, and those that are there now: address, bytes and
    /// the call that made it.
    pub fn leaks(&self) -> Vec<(u64, u64, u64)> {
        let mut all = self.leaks.clone();
        for handle in self.contexts.keys() {
            all.extend(self.left_in(*handle));
        }
        all
    }

    /// What a program has allocated in a context and not freed.
    pub(crate) fn left_in(&self, context: ContextHandle) -> Vec<(u64, u64, u64)> {
        let own = |base: &u64| {
            let mut modules = self.modules.values();
            !modules.any(|module| module.allocations.contains(base))
        };
        let left = self.memory.owned_by(context).into_iter().filter(own);
        left.filter_map(|base| self.memory.find(base))
            .map(|allocation| (allocation.info.base, allocation.info.bytes, allocation.call))
            .collect()
    }

    /// Faults that kernels fell into.
    pub fn faults(&self) -> &[MetFault] {
        &self.faults
    }

    /// What the user should know although nothing failed.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// How the code that ran came to be, each sentence once.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// What of the run depended on the host's timing, in sentences.
    pub fn dependences(&self) -> &[String] {
        &self.dependences
    }

    /// Something of the run depends on the host's timing.
    pub fn depends(&mut self, sentence: String) {
        if !self.dependences.contains(&sentence) {
            self.dependences.push(sentence);
        }
    }

    /// Calls that programs wanted and that are lacking, by name.
    pub fn unsupported(&self) -> Vec<UnsupportedCall> {
        self.unsupported
            .iter()
            .map(|((name, manner), count)| UnsupportedCall {
                name: name.clone(),
                manner: *manner,
                count: *count,
            })
            .collect()
    }

    /// The call or option that failed because it is lacking, if the program made few calls after it: it may be the
    /// reason of a bad end. A process tells of each once, when it first meets it.
    pub fn unsupported_at_end(&self) -> Option<UnsupportedCall> {
        let last = self.last_unsupported.as_ref()?;
        (self.calls - last.call <= CALLS_BEFORE_END).then(|| UnsupportedCall {
            name: last.name.clone(),
            manner: last.manner,
            count: 1,
        })
    }

    /// Whether the run was asked to stop inside a call.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// The hardware.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The hardware, to change it between calls.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Notes for the list at the end of the run.
    pub(crate) fn note_unsupported(&mut self, name: &str, manner: UnsupportedManner) {
        *self
            .unsupported
            .entry((name.to_string(), manner))
            .or_default() += 1;
        if matches!(
            manner,
            UnsupportedManner::Called | UnsupportedManner::Option
        ) {
            self.last_unsupported = Some(LastUnsupported {
                name: name.to_string(),
                manner,
                call: self.calls,
            });
        }
    }

    pub(crate) fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            tracing::warn!("{warning}");
            self.warnings.push(warning);
        }
    }

    pub(crate) fn remark(&mut self, remark: String) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// A number that was never given before.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// When the device knows of what the host asks for now.
    pub(crate) fn issue_time(&mut self) -> Time {
        let command = self.timeline.command();
        if command > Duration::ZERO {
            let arrives = self.now + command;
            self.device.note(Part::Host, self.now, &|| {
                format!("a command leaves, and arrives at {arrives}")
            });
        }
        self.now + command
    }

    /// Lets the host work for a while.
    pub(crate) fn spend(&mut self, cost: Duration) {
        self.now += cost;
    }

    /// Lets the host launch something: that takes longer when it has not done so for a while.
    pub(crate) fn spend_launch(&mut self, mut cost: Duration) {
        let host = &self.config.host;
        if self.now.since(self.launched) >= host.launch_cold_after {
            cost += host.launch_cold;
        }
        self.spend(cost);
        self.launched = self.now;
    }

    /// Waits until a point of a stream is reached.
    pub(crate) fn wait(&mut self, stream: StreamKey, position: u64) -> CallResult<()> {
        self.advance(Goal::Position(stream, position))?;
        let reached = self.timeline.finished(stream).max(self.timeline.now());
        self.now = self.now.max(reached + self.timeline.command());
        Ok(())
    }

    /// Lets the device advance to where the host is, which changes nothing but when that is simulated.
    ///
    /// # Errors
    /// A kernel failed on the way, or the run was stopped.
    pub fn catch_up(&mut self) -> CallResult<()> {
        self.advance(Goal::Until(self.now))
    }

    pub(crate) fn advance(&mut self, goal: Goal) -> CallResult<()> {
        let advanced = self.timeline.advance(&mut self.device, goal);
        self.outcome(advanced)
    }

    /// What comes of an advance, for the call that asked for it.
    pub(crate) fn outcome(&mut self, advanced: Result<(), Interruption>) -> CallResult<()> {
        match advanced {
            Ok(()) => {
                self.collect();
                Ok(())
            }
            Err(Interruption::Fault(fault)) => {
                self.collect();
                Err(self.take_fault(fault, None))
            }
            Err(Interruption::Stopped) => {
                self.stopped = true;
                Err(failure(CuResult::DEINITIALIZED, "the run was stopped"))
            }
            Err(Interruption::Stuck) => Err(failure(
                CuResult::LAUNCH_TIMEOUT,
                "streams wait for each other and nothing is left to run",
            )),
            Err(Interruption::Called) => {
                self.collect();
                Err(failure(CuResult::NOT_READY, "a call came meanwhile"))
            }
        }
    }

    /// Notes what the timeline finished.
    fn collect(&mut self) {
        for result in self.timeline.take_results() {
            let Some(launch) = self.launches.get_mut(result.id as usize) else {
                continue;
            };
            if let Some(by_kernel) = result.by_kernel.clone() {
                let summary = LaunchSummary::by_kernel(launch, &by_kernel, result);
                self.launches_by_kernels.push(summary);
            } else {
                launch.result = Some(result);
            }
        }
        for address in self.timeline.take_released() {
            if let Ok(allocation) = self.memory.free(address) {
                self.vacate(&allocation);
            }
        }
    }

    /// A kernel, or a stream of a known context, did what it must not: its context is dead from now
    /// on.
    pub(crate) fn take_fault(&mut self, mut fault: Fault, known: Option<ContextHandle>) -> Failure {
        if let Some(story) = fault.address.and_then(|address| self.memory.story(address)) {
            fault.message.push_str("; ");
            fault.message.push_str(&story);
        }
        let launch = fault.launch.and_then(|id| self.launches.get(id as usize));
        let foreign = launch.and_then(|launch| self.foreign_memory(fault.address?, launch.gpu));
        fault.message.extend(foreign);
        let at_fault = launch.map(|launch| ContextHandle(launch.context)).or(known);
        let context = at_fault.and_then(|handle| self.contexts.get(&handle));
        // Without a context to blame, all GPUs stop.
        let gpus = match context {
            Some(context) => context.device..context.device + 1,
            None => 0..self.device.gpus(),
        };
        for gpu in gpus.clone() {
            self.device.abort(gpu);
        }
        self.now = self.now.max(self.device.now());
        let failure = failure(fault.code, fault.message.clone());
        tracing::error!("{}", fault.message);
        // Kernels of other contexts were on the device as well; they are lost with it, which other
        // processes are told.
        self.lose_others(&gpus, at_fault);
        for gpu in gpus.clone() {
            let streams = self.timeline.streams_of(gpu);
            self.timeline.abandon(&streams);
        }
        let contexts = &self.contexts;
        let lost = |run: &GraphRun| match contexts.get(&run.context) {
            Some(context) => gpus.contains(&context.device),
            None => true,
        };
        self.graph_runs.retain(|_, run| !lost(run));
        for (handle, context) in &mut self.contexts {
            if at_fault.is_none_or(|at_fault| at_fault == *handle) {
                context.sticky = Some(fault.code);
            }
        }
        self.faults.push(MetFault::new(fault, at_fault));
        failure
    }

    /// Other processes with work on GPUs that stop hear of it from their next call.
    fn lose_others(&mut self, gpus: &std::ops::Range<u32>, at_fault: Option<ContextHandle>) {
        let Some(process) = at_fault.and_then(|one| Some(self.contexts.get(&one)?.process)) else {
            return;
        };
        for handle in self.others_at_work(gpus, process) {
            let Some(context) = self.contexts.get_mut(&handle) else {
                continue;
            };
            context.sticky = Some(CuResult::LAUNCH_FAILED);
            let (gpu, other) = (context.device, context.process);
            let gpu = self.gpu_name(gpu);
            self.warn(format!(
                "process {other} of the run had work on {gpu} when a kernel of process {process} failed \
                 there: it is lost, and its calls fail with CUDA_ERROR_LAUNCH_FAILED (719)"
            ));
        }
    }

    /// What to say of an address in the memory of another GPU than the one that a kernel runs on.
    fn foreign_memory(&self, address: u64, gpu: u32) -> Option<String> {
        let Some(Region::Device(home)) = region_of(address) else {
            return None;
        };
        if home == gpu {
            return None;
        }
        let (own, other) = (self.gpu_name(gpu), self.gpu_name(home));
        Some(match self.device.neighbours(gpu).contains(&home) {
            true => format!(
                "; {own} may not use the memory of {other} unless peer access is enabled \
                 (cudaDeviceEnablePeerAccess)"
            ),
            false => format!("; {own} cannot use the memory of {other}, which is on another node"),
        })
    }

    /// The error of a dead context. What happened was said when it did: the code alone comes again.
    fn sticky(&self, context: ContextHandle) -> Option<Failure> {
        let code = self.contexts.get(&context)?.sticky?;
        Some(failure(code, String::new()))
    }
}

/// Calls that a dead context still answers.
fn survives_a_fault(request: &Request) -> bool {
    matches!(
        request,
        Request::PrimaryContextReset { .. }
            | Request::PrimaryContextRelease { .. }
            | Request::ContextDestroy { .. }
            | Request::Unsupported { .. }
            | Request::Profiler { .. }
            | Request::Range(_)
            | Request::PointerInfo { .. }
            | Request::HostAccess { .. }
            | Request::HostAccessMeans { .. }
            | Request::HostPoll { .. }
            | Request::HostVisible
            | Request::ThreadBegins
    )
}
