//! Graphs that are ready for launching.
//!
//! Instantiating copies the graph, so that later changes of it do not show; changes of the
//! instance are made in the copy. The simulator is told at the first launch, and again after
//! a change.

use super::capture;
use super::model::{CopyNode, Graphs, HostNode, NodeWork, graphs};
use crate::api::{self, Side};
use crate::call::{ask, done};
use crate::fair_mutex::FairMutex;
use crate::opaque::{self, Kind};
use crate::process::lock;
use crate::streams::Target;
use crate::types::Address;
use lockstep_protocol::{
    ContextHandle, Copy, CuResult, EventHandle, Extent, Fill, GraphHandle, GraphNode, GraphWork,
    Launch, LaunchConfig, Request, Rows, StreamName,
};
use std::collections::{BTreeMap, BTreeSet};

/// `cudaGraphInstantiateFlagUseNodePriority`: kernels have the priorities of their nodes, not that of
/// the stream that the graph is launched in.
const USE_NODE_PRIORITY: u64 = 8;

/// An instance of a graph.
struct Exec {
    /// The copy.
    graph: u64,
    /// Nodes of the copy by the nodes that the program knows.
    nodes: BTreeMap<u64, u64>,
    /// Nodes of the copy that are switched off.
    disabled: BTreeSet<u64>,
    flags: u64,
    uploaded: Option<Uploaded>,
}

/// What the simulator was told of an instance.
#[derive(Clone)]
struct Uploaded {
    handle: GraphHandle,
    context: ContextHandle,
    /// What the program does itself, by index of the node.
    steps: BTreeMap<u32, Step>,
}

#[derive(Clone, Copy)]
enum Step {
    Host(HostNode),
    /// Where to, where from, how much.
    Copy(Side, Side, Extent),
}

struct Execs {
    next: u64,
    execs: BTreeMap<u64, Exec>,
}

static EXECS: FairMutex<Execs> = FairMutex::new(Execs {
    next: 1,
    execs: BTreeMap::new(),
});

fn decode(handle: Address) -> Result<u64, CuResult> {
    opaque::decode(Kind::GraphExec, handle).ok_or(CuResult::INVALID_VALUE)
}

/// Makes an instance of a graph.
pub fn instantiate(graph: u64, flags: u64) -> Result<Address, CuResult> {
    let mut graphs = graphs();
    graphs.ordered(graph)?;
    let copy = graphs.clone_graph(graph)?;
    let mut nodes = BTreeMap::new();
    name_nodes(&graphs, copy, &mut nodes)?;
    drop(graphs);
    let mut execs = lock(&EXECS);
    let number = execs.next;
    execs.next += 1;
    let exec = Exec {
        graph: copy,
        nodes,
        disabled: BTreeSet::new(),
        flags,
        uploaded: None,
    };
    execs.execs.insert(number, exec);
    Ok(opaque::encode(Kind::GraphExec, number))
}

fn name_nodes(graphs: &Graphs, graph: u64, nodes: &mut BTreeMap<u64, u64>) -> Result<(), CuResult> {
    graphs.ordered(graph)?;
    for (number, node) in &graphs.graph(graph)?.nodes {
        nodes.extend(node.origin.map(|origin| (origin, *number)));
        if let NodeWork::Child(child) = node.work {
            name_nodes(graphs, child, nodes)?;
        }
    }
    Ok(())
}

/// Forgets an instance; what of it runs goes on.
pub fn destroy(handle: Address) -> Result<(), CuResult> {
    let removed = lock(&EXECS).execs.remove(&decode(handle)?);
    let removed = removed.ok_or(CuResult::INVALID_VALUE)?;
    graphs().remove(removed.graph);
    match removed.uploaded {
        Some(uploaded) => done(&Request::GraphDestroy {
            graph: uploaded.handle,
        }),
        None => Ok(()),
    }
}

/// The flags that an instance was made with.
pub fn flags(handle: Address) -> Result<u64, CuResult> {
    let execs = lock(&EXECS);
    let exec = execs.execs.get(&decode(handle)?);
    // That nodes have priorities is not told, as a GPU's driver does not either.
    Ok(exec.ok_or(CuResult::INVALID_VALUE)?.flags & !USE_NODE_PRIORITY)
}

/// The number of an instance.
pub fn identity(handle: Address) -> Result<u32, CuResult> {
    let number = decode(handle)?;
    match lock(&EXECS).execs.contains_key(&number) {
        true => Ok(number as u32),
        false => Err(CuResult::INVALID_VALUE),
    }
}

/// Changes what a node of an instance does. The kind stays.
pub fn change(handle: Address, node: u64, work: NodeWork) -> Result<(), CuResult> {
    with_node(handle, node, |graphs, _, copy| {
        let place = &mut graphs.node_mut(copy)?.work;
        if place.kind() != work.kind() || moves_away(place, &work) {
            return Err(CuResult::INVALID_VALUE);
        }
        *place = work;
        Ok(true)
    })
}

/// Whether a copy that touched memory of the graph itself would no longer do so.
fn moves_away(before: &NodeWork, after: &NodeWork) -> bool {
    let (NodeWork::Copy(before), NodeWork::Copy(after)) = (before, after) else {
        return false;
    };
    let left = |before: Side, after: Side| {
        api::is_graph_memory(before.address) && before.address != after.address
    };
    left(before.to, after.to) || left(before.from, after.from)
}

/// Replaces the child graph of a node by a copy of another of the same shape.
pub fn change_child(handle: Address, node: u64, graph: u64) -> Result<(), CuResult> {
    with_node(handle, node, |graphs, nodes, copy| {
        let NodeWork::Child(child) = graphs.node(copy)?.work else {
            return Err(CuResult::INVALID_VALUE);
        };
        if let Err((_, _, _)) = compare(graphs, child, graph) {
            return Err(CuResult::GRAPH_EXEC_UPDATE_FAILURE);
        }
        take_over(graphs, nodes, child, graph)?;
        Ok(true)
    })
}

/// Switches a node of an instance on or off.
pub fn set_enabled(handle: Address, node: u64, enabled: bool) -> Result<(), CuResult> {
    let mut execs = lock(&EXECS);
    let exec = execs.execs.get_mut(&decode(handle)?);
    let exec = exec.ok_or(CuResult::INVALID_VALUE)?;
    let copy = *exec.nodes.get(&node).ok_or(CuResult::INVALID_VALUE)?;
    if graphs().node(copy)?.work.kind() > 2 {
        return Err(CuResult::INVALID_VALUE);
    }
    if enabled {
        exec.disabled.remove(&copy);
    } else {
        exec.disabled.insert(copy);
    }
    exec.forget_upload()
}

/// Whether a node of an instance is switched on.
pub fn is_enabled(handle: Address, node: u64) -> Result<bool, CuResult> {
    let execs = lock(&EXECS);
    let exec = execs.execs.get(&decode(handle)?);
    let exec = exec.ok_or(CuResult::INVALID_VALUE)?;
    let copy = exec.nodes.get(&node).ok_or(CuResult::INVALID_VALUE)?;
    Ok(!exec.disabled.contains(copy))
}

fn with_node(
    handle: Address,
    node: u64,
    change: impl FnOnce(&mut Graphs, &mut BTreeMap<u64, u64>, u64) -> Result<bool, CuResult>,
) -> Result<(), CuResult> {
    let mut execs = lock(&EXECS);
    let exec = execs.execs.get_mut(&decode(handle)?);
    let exec = exec.ok_or(CuResult::INVALID_VALUE)?;
    let copy = *exec.nodes.get(&node).ok_or(CuResult::INVALID_VALUE)?;
    if change(&mut graphs(), &mut exec.nodes, copy)? {
        exec.forget_upload()?;
    }
    Ok(())
}

/// `cudaGraphExecUpdateResult`, with the node and the one before it that are to blame.
pub type UpdateFailure = (i32, u64, u64);

/// Takes over all parameters of a graph of the same shape.
pub fn update(handle: Address, graph: u64) -> Result<Result<(), UpdateFailure>, CuResult> {
    let mut execs = lock(&EXECS);
    let exec = execs.execs.get_mut(&decode(handle)?);
    let exec = exec.ok_or(CuResult::INVALID_VALUE)?;
    let mut graphs = graphs();
    graphs.graph(graph)?;
    if let Err(failure) = compare(&graphs, exec.graph, graph) {
        return Ok(Err(failure));
    }
    take_over(&mut graphs, &mut exec.nodes, exec.graph, graph)?;
    drop(graphs);
    exec.forget_upload()?;
    Ok(Ok(()))
}

const TOPOLOGY_CHANGED: i32 = 2;
const KIND_CHANGED: i32 = 3;

/// Pairs of nodes of two graphs, in the order of their making.
fn pairs(graphs: &Graphs, ours: u64, theirs: u64) -> Result<Vec<(u64, u64)>, CuResult> {
    let ours = graphs.graph(ours)?.nodes.keys().copied();
    let theirs = graphs.graph(theirs)?.nodes.keys().copied();
    Ok(ours.zip(theirs).collect())
}

fn compare(graphs: &Graphs, ours: u64, theirs: u64) -> Result<(), UpdateFailure> {
    let broken = |_| (1, 0, 0);
    let sizes = (
        graphs.graph(ours).map_err(broken)?.nodes.len(),
        graphs.graph(theirs).map_err(broken)?.nodes.len(),
    );
    if sizes.0 != sizes.1 {
        return Err((TOPOLOGY_CHANGED, 0, 0));
    }
    let paired = pairs(graphs, ours, theirs).map_err(broken)?;
    let names: BTreeMap<u64, u64> = paired.iter().copied().collect();
    for (our, their) in &paired {
        let (ours, theirs) = (
            graphs.node(*our).map_err(broken)?,
            graphs.node(*their).map_err(broken)?,
        );
        if ours.work.kind() != theirs.work.kind() {
            return Err((KIND_CHANGED, *their, 0));
        }
        let expected: BTreeSet<u64> = ours.after.iter().map(|before| names[before]).collect();
        let found: BTreeSet<u64> = theirs.after.iter().copied().collect();
        if let Some(other) = expected.symmetric_difference(&found).next() {
            return Err((TOPOLOGY_CHANGED, *their, *other));
        }
        if let (NodeWork::Child(ours), NodeWork::Child(theirs)) = (&ours.work, &theirs.work) {
            compare(graphs, *ours, *theirs)?;
        }
    }
    Ok(())
}

/// Copies what nodes do from one graph to another of the same shape; from now on the nodes of
/// both name those of the first.
fn take_over(
    graphs: &mut Graphs,
    nodes: &mut BTreeMap<u64, u64>,
    ours: u64,
    theirs: u64,
) -> Result<(), CuResult> {
    for (our, their) in pairs(graphs, ours, theirs)? {
        nodes.insert(their, our);
        let theirs = graphs.node(their)?.work.clone();
        let ours = &graphs.node(our)?.work;
        match (ours, theirs) {
            (NodeWork::Child(ours), NodeWork::Child(theirs)) => {
                take_over(graphs, nodes, *ours, theirs)?;
            }
            (_, work) => graphs.node_mut(our)?.work = work,
        }
    }
    Ok(())
}

impl Exec {
    fn forget_upload(&mut self) -> Result<(), CuResult> {
        match self.uploaded.take() {
            Some(uploaded) => done(&Request::GraphDestroy {
                graph: uploaded.handle,
            }),
            None => Ok(()),
        }
    }

    fn upload(&mut self, context: ContextHandle) -> Result<Uploaded, CuResult> {
        if let Some(uploaded) = &self.uploaded
            && uploaded.context == context
        {
            return Ok(uploaded.clone());
        }
        self.forget_upload()?;
        let mut flat = Flat {
            context,
            disabled: &self.disabled,
            own_priorities: self.flags & USE_NODE_PRIORITY != 0,
            nodes: Vec::new(),
            steps: BTreeMap::new(),
        };
        flat.add(&graphs(), self.graph, &[])?;
        let (nodes, steps) = (flat.nodes, flat.steps);
        let handle = ask!(Graph, &Request::GraphCreate { context, nodes });
        let uploaded = Uploaded {
            handle,
            context,
            steps,
        };
        self.uploaded = Some(uploaded.clone());
        Ok(uploaded)
    }
}

/// Tells the simulator of an instance ahead of its launch.
pub fn upload(handle: Address, context: ContextHandle) -> Result<(), CuResult> {
    let mut execs = lock(&EXECS);
    let exec = execs.execs.get_mut(&decode(handle)?);
    exec.ok_or(CuResult::INVALID_VALUE)?.upload(context)?;
    Ok(())
}

/// Launches an instance in a stream.
pub fn launch(handle: Address, target: Target) -> Result<(), CuResult> {
    let number = decode(handle)?;
    let captured = capture::takes(target, || {
        let graph = lock(&EXECS).execs.get(&number).map(|exec| exec.graph);
        let graph = graph.ok_or(CuResult::INVALID_VALUE)?;
        Ok(NodeWork::Child(graphs().clone_graph(graph)?))
    })?;
    if captured {
        return Ok(());
    }
    let uploaded = {
        let mut execs = lock(&EXECS);
        let exec = execs.execs.get_mut(&number);
        exec.ok_or(CuResult::INVALID_VALUE)?
            .upload(target.context)?
    };
    let mut step = ask!(
        Step,
        &Request::GraphLaunch {
            context: target.context,
            stream: target.stream,
            graph: uploaded.handle,
        }
    );
    while let Some(due) = step {
        match uploaded.steps.get(&due.node) {
            Some(Step::Host(host)) => {
                if let Some(function) = host.function {
                    // SAFETY: the program asked for this function with this argument.
                    unsafe { function(host.data) };
                }
            }
            Some(Step::Copy(to, from, extent)) => api::move_bytes(*to, *from, *extent),
            None => return Err(CuResult::UNKNOWN),
        }
        let request = Request::GraphContinue {
            context: target.context,
            launch: due.launch,
            node: due.node,
        };
        step = ask!(Step, &request);
    }
    Ok(())
}

/// A graph with its child graphs, as one list.
struct Flat<'exec> {
    context: ContextHandle,
    disabled: &'exec BTreeSet<u64>,
    /// Whether kernels have the priorities of their nodes.
    own_priorities: bool,
    nodes: Vec<GraphNode>,
    steps: BTreeMap<u32, Step>,
}

impl Flat<'_> {
    /// Adds a graph after some nodes; answers its last nodes, or those that it came after if
    /// it is empty.
    fn add(&mut self, graphs: &Graphs, graph: u64, after: &[u32]) -> Result<Vec<u32>, CuResult> {
        // Where each node ends; for a child graph these may be several nodes.
        let mut ends: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        let mut last: BTreeSet<u32> = BTreeSet::new();
        for number in graphs.ordered(graph)? {
            let node = graphs.node(number)?;
            let before: BTreeSet<u32> = node
                .after
                .iter()
                .flat_map(|before| ends[before].iter().copied())
                .collect();
            let mut before: Vec<u32> = before.into_iter().collect();
            for index in &before {
                last.remove(index);
            }
            if node.after.is_empty() {
                before = after.to_vec();
            }
            let end = match node.work {
                NodeWork::Child(child) => self.add(graphs, child, &before)?,
                _ => self.add_node(number, &node.work, before)?,
            };
            last.extend(end.iter().copied());
            ends.insert(number, end);
        }
        if last.is_empty() {
            last.extend(after);
        }
        Ok(last.into_iter().collect())
    }

    fn add_node(
        &mut self,
        number: u64,
        work: &NodeWork,
        mut after: Vec<u32>,
    ) -> Result<Vec<u32>, CuResult> {
        let (context, own_priorities) = (self.context, self.own_priorities);
        let mut push = |work: GraphWork, after: Vec<u32>| {
            self.nodes.push(GraphNode { work, after });
            self.nodes.len() as u32 - 1
        };
        let work = match work {
            _ if self.disabled.contains(&number) => GraphWork::Empty,
            NodeWork::Values(values) => {
                for value in values {
                    after = vec![push(GraphWork::Value(*value), after)];
                }
                return Ok(after);
            }
            NodeWork::Empty | NodeWork::Allocate(..) | NodeWork::Free(_) | NodeWork::Child(_) => {
                GraphWork::Empty
            }
            NodeWork::Kernel(kernel) => GraphWork::Kernel(Box::new(Launch {
                context: self.context,
                stream: StreamName::Legacy,
                function: lock(&kernel.function.info).handle,
                config: LaunchConfig {
                    grid: kernel.grid.into(),
                    block: kernel.block.into(),
                    dynamic_shared: kernel.shared,
                },
                parameters: kernel.arguments.block.to_vec(),
                cooperative: kernel.extras.cooperative,
                cluster: kernel.extras.cluster,
                priority: own_priorities.then_some(kernel.extras.priority.unwrap_or(0)),
                carveout: kernel.extras.carveout,
                programmatic_stream_serialization: false,
            })),
            NodeWork::Copy(copy) => {
                if Side::is_program(copy.to) || Side::is_program(copy.from) {
                    let index = push(GraphWork::Copy(wire_copy(context, copy)), after);
                    self.steps
                        .insert(index, Step::Copy(copy.to, copy.from, copy.extent));
                    return Ok(vec![index]);
                }
                GraphWork::Copy(wire_copy(self.context, copy))
            }
            NodeWork::Fill(fill) => GraphWork::Fill(Fill {
                context: self.context,
                stream: StreamName::Legacy,
                destination: Rows {
                    address: fill.address as u64,
                    row_pitch: fill.pitch as u64,
                    slice_pitch: 0,
                },
                extent: Extent {
                    width: fill.width as u64 * u64::from(fill.element),
                    height: fill.height as u64,
                    depth: 1,
                },
                pattern: fill.value,
                pattern_bytes: fill.element as u8,
                blocking: false,
            }),
            NodeWork::Host(host) => {
                let index = push(GraphWork::Program, after);
                self.steps.insert(index, Step::Host(*host));
                return Ok(vec![index]);
            }
            NodeWork::Wait(event) => GraphWork::Wait(event_handle(*event)?),
            NodeWork::Record(event) => GraphWork::Record(event_handle(*event)?),
        };
        Ok(vec![push(work, after)])
    }
}

fn event_handle(event: Address) -> Result<EventHandle, CuResult> {
    let number = opaque::decode(Kind::Event, event).ok_or(CuResult::INVALID_HANDLE)?;
    Ok(EventHandle(number))
}

fn wire_copy(context: ContextHandle, copy: &CopyNode) -> Copy {
    Copy {
        context,
        stream: StreamName::Legacy,
        destination: copy.to.place(),
        source: copy.from.place(),
        extent: copy.extent,
        blocking: false,
    }
}
