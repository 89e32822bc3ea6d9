//! Launches as a Perfetto trace, in its typed GPU packets.
//!
//! A launch is a `GpuRenderStageEvent` of category COMPUTE on the queue of its stream, with its kernel
//! (`InternedComputeKernel`) and its dimensions (`ComputeKernelLaunch`). A counter is a GPU counter
//! track: while launches run, it holds the sum of what they counted from beginning to end.
//!
//! Numbers of fields are those of Perfetto's `protos/perfetto/trace/perfetto_trace.proto`, and of its
//! extension for GPUs (`GpuInternedData`: 1000 and up).
//!
//! Start reading at [`perfetto`].

use super::columns::Names;
use super::protobuf::Message;
use lockstep_counters::{COUNTERS, Metric};
use lockstep_run_folder::Launch;
use lockstep_run_folder::Run;
use lockstep_text::names;
use std::collections::BTreeMap;

/// All packets are of one writer.
const SEQUENCE: u64 = 1;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
const CATEGORY_COMPUTE: u64 = 2;
const API_CUDA: u64 = 4;
const GROUP_COMPUTE: u64 = 6;
const FORWARDS_LOOKING: u64 = 2;
/// The stage of every launch; queues have the numbers after it.
const STAGE: u64 = 1;

/// Who is known by which number.
struct Interned<'run> {
    kernels: BTreeMap<&'run str, u64>,
    streams: BTreeMap<u64, u64>,
    contexts: BTreeMap<u64, u64>,
    gpus: BTreeMap<&'run str, u64>,
    counters: Vec<(usize, &'static Metric)>,
}

fn numbered<K: Ord>(keys: impl Iterator<Item = K>, first: u64) -> BTreeMap<K, u64> {
    let mut all: BTreeMap<K, u64> = keys.map(|key| (key, 0)).collect();
    for (number, value) in (first..).zip(all.values_mut()) {
        *value = number;
    }
    all
}

/// A trace of the launches that have a place in time.
pub fn perfetto(run: &Run, names: Names) -> Vec<u8> {
    let launches: Vec<(&Launch, u64, u64)> = run
        .launches
        .iter()
        .filter_map(|launch| {
            let (start, length) = (launch.start?, launch.duration_ns?);
            Some((launch, start, start.saturating_add(length.round() as u64)))
        })
        .collect();
    let counted = |place: usize| {
        let mut values = run.launches.iter().map(|launch| launch.counters()[place]);
        values.any(|value| value.is_some_and(|value| value > 0))
    };
    let interned = Interned {
        kernels: numbered(run.launches.iter().map(|one| one.kernel.as_str()), 1),
        streams: numbered(run.launches.iter().map(|one| one.stream), STAGE + 1),
        contexts: numbered(run.launches.iter().map(|one| one.context), 1),
        gpus: numbered(run.launches.iter().map(|one| one.gpu.as_str()), 0),
        counters: COUNTERS
            .iter()
            .enumerate()
            .filter(|(place, _)| counted(*place))
            .collect(),
    };
    let mut trace = Message::default();
    trace = packet(trace, 0, STATE_CLEARED, |packet| {
        packet.inner(12, interned.data(run))
    });
    for (gpu, number) in &interned.gpus {
        let descriptor = interned.descriptor(names);
        let event = Message::default()
            .inner(1, descriptor)
            .int(3, *number as i64);
        trace = packet(trace, 0, NEEDS_STATE, |packet| packet.inner(52, event));
        trace = interned.counter_packets(trace, &launches, gpu, *number);
    }
    for (launch, start, end) in &launches {
        let event = interned.launch(launch, end - start);
        trace = packet(trace, *start, NEEDS_STATE, |packet| packet.inner(53, event));
    }
    trace.end()
}

fn packet(trace: Message, time: u64, flags: u64, fill: impl FnOnce(Message) -> Message) -> Message {
    let packet = Message::default().uint(8, time).uint(10, SEQUENCE);
    trace.inner(1, fill(packet).uint(13, flags))
}

impl Interned<'_> {
    /// `InternedData`.
    fn data(&self, run: &Run) -> Message {
        let mut data = Message::default();
        for number in self.contexts.values() {
            let context = Message::default()
                .uint(1, *number)
                .int(2, 1)
                .uint(3, API_CUDA);
            data = data.inner(23, context);
        }
        let stage = Message::default()
            .uint(1, STAGE)
            .text(2, "Kernel")
            .text(3, "A launch of a kernel")
            .uint(4, CATEGORY_COMPUTE);
        data = data.inner(24, stage);
        for (stream, number) in &self.streams {
            let queue = Message::default()
                .uint(1, *number)
                .text(2, &format!("stream {stream}"));
            data = data.inner(24, queue);
        }
        let architecture = run.config.as_ref();
        let architecture = architecture.map(|config| {
            let number = config.device.compute_capability.architecture();
            format!("sm_{number}")
        });
        for (kernel, number) in &self.kernels {
            let mut message = Message::default()
                .uint(1, *number)
                .text(2, kernel)
                .text(3, &names::whole(kernel));
            if let Some(architecture) = &architecture {
                message = message.text(4, architecture);
            }
            data = data.inner(1000, message);
        }
        data
    }

    /// `GpuRenderStageEvent`.
    fn launch(&self, launch: &Launch, duration: u64) -> Message {
        let dimensions = |[x, y, z]: [u32; 3]| {
            let message = Message::default().uint(1, x.into());
            message.uint(2, y.into()).uint(3, z.into())
        };
        let mut shape = Message::default()
            .inner(1, dimensions(launch.grid))
            .inner(2, dimensions(launch.block));
        let known = [
            ("launch", Some(launch.number)),
            ("registers_per_thread", launch.registers.map(u64::from)),
            ("shared_bytes_per_block", launch.shared_bytes),
            ("parent", launch.parent),
        ];
        for (name, value) in known {
            if let Some(value) = value {
                shape = shape.inner(3, Message::default().text(2, name).uint(4, value));
            }
        }
        Message::default()
            .uint(1, launch.number.saturating_add(1))
            .uint(2, duration)
            .uint(5, self.contexts[&launch.context])
            .int(11, self.gpus[launch.gpu.as_str()] as i64)
            .uint(13, self.streams[&launch.stream])
            .uint(14, STAGE)
            .text(17, &names::readable(&launch.kernel))
            .uint(19, self.kernels[launch.kernel.as_str()])
            .inner(21, shape)
    }

    /// `GpuCounterDescriptor`.
    fn descriptor(&self, names: Names) -> Message {
        let mut descriptor = Message::default();
        for (place, metric) in &self.counters {
            let spec = Message::default()
                .uint(1, *place as u64)
                .text(2, names.of(metric))
                .text(
                    3,
                    &format!(
                        "{} Unit: {}. Summed over the launches that run.",
                        metric.summary, metric.unit
                    ),
                )
                .uint(10, GROUP_COMPUTE)
                .uint(11, FORWARDS_LOOKING);
            descriptor = descriptor.inner(1, spec);
        }
        descriptor
    }

    /// A value of every counter whenever a launch of a GPU begins or ends.
    fn counter_packets(
        &self,
        mut trace: Message,
        launches: &[(&Launch, u64, u64)],
        gpu: &str,
        number: u64,
    ) -> Message {
        let mut changes: BTreeMap<u64, Vec<(&Launch, bool)>> = BTreeMap::new();
        for (launch, start, end) in launches.iter().filter(|(launch, ..)| launch.gpu == gpu) {
            changes.entry(*start).or_default().push((launch, true));
            changes.entry(*end).or_default().push((launch, false));
        }
        let mut sums = vec![0i128; COUNTERS.len()];
        for (time, at_once) in changes {
            for (launch, begins) in at_once {
                for (place, _) in &self.counters {
                    let value = i128::from(launch.counters()[*place].unwrap_or(0));
                    sums[*place] += if begins { value } else { -value };
                }
            }
            let mut event = Message::default();
            for (place, _) in &self.counters {
                let value = i64::try_from(sums[*place]).unwrap_or(i64::MAX);
                event = event.inner(2, Message::default().uint(1, *place as u64).int(2, value));
            }
            let event = event.int(3, number as i64);
            trace = packet(trace, time, NEEDS_STATE, |packet| packet.inner(52, event));
        }
        trace
    }
}
