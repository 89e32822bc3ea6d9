//! Graphs: work whose order is known beforehand, launched as one.
//!
//! A launch gives every chain of nodes a stream of its own, so that what does not depend on each
//! other overlaps, and joins them in the stream of the launch. Steps that only the program can
//! perform (host functions, copies of its own memory) hold their chain until it has done so; the
//! call that launches the graph carries them out, one after the other.

use crate::device::Device;
use crate::timeline::{Effect, Goal, Position, StreamKey, Work};
use crate::{CallResult, Client, Runtime, fail};
use lockstep_protocol::{
    ContextHandle, CuResult, GraphHandle, GraphNode, GraphWork, ProgramStep, Reply, StreamName,
};
use std::sync::Arc;

/// A graph that is ready for launching.
#[derive(Debug)]
pub struct Graph {
    /// The context that it lives in.
    pub context: ContextHandle,
    nodes: Arc<Vec<GraphNode>>,
}

/// A launch of a graph that still needs the program.
#[derive(Debug)]
pub struct GraphRun {
    /// The context that it runs in.
    pub context: ContextHandle,
    nodes: Arc<Vec<GraphNode>>,
    /// Where it ends: a point of the stream that it was launched in.
    end: (StreamKey, Position),
}

/// Most nodes of one graph; a launch makes work for each.
const MAXIMUM_NODES: usize = 1 << 20;

impl<D: Device> Runtime<D> {
    pub(super) fn graph_create(
        &mut self,
        context: ContextHandle,
        nodes: &[GraphNode],
    ) -> CallResult<Reply> {
        self.context(context)?;
        if nodes.len() > MAXIMUM_NODES {
            return fail(
                CuResult::OUT_OF_MEMORY,
                format!("a graph of {} nodes", nodes.len()),
            );
        }
        for (index, node) in nodes.iter().enumerate() {
            if node.after.iter().any(|before| *before as usize >= index) {
                return fail(
                    CuResult::INVALID_VALUE,
                    format!("node {index} of a graph depends on one that does not come before it"),
                );
            }
        }
        let handle = GraphHandle(self.fresh());
        let nodes = Arc::new(nodes.to_vec());
        self.graphs.insert(handle, Graph { context, nodes });
        Ok(Reply::Graph(handle))
    }

    pub(super) fn graph_destroy(&mut self, handle: GraphHandle) -> CallResult<Reply> {
        match self.graphs.remove(&handle) {
            Some(_) => Ok(Reply::Done),
            None => fail(CuResult::INVALID_HANDLE, format!("there is no {handle}")),
        }
    }

    pub(super) fn graph_launch(
        &mut self,
        client: Client,
        context: ContextHandle,
        stream: StreamName,
        handle: GraphHandle,
    ) -> CallResult<Reply> {
        let key = self.stream_key(client, context, stream)?;
        let host = &self.config.host;
        self.spend_launch(host.graph_launch.unwrap_or(host.launch));
        let Some(graph) = self.graphs.get(&handle) else {
            return fail(CuResult::INVALID_HANDLE, format!("there is no {handle}"));
        };
        let nodes = graph.nodes.clone();
        let launch = self.fresh();
        let launched = self.launches.len();
        // Everything of the graph begins here.
        let begin = (key, self.enqueue(context, key, Work::Instant(Effect::None)));
        let mut placing = Placing {
            launch,
            context,
            gpu: self.context(context)?.device,
            priority: self.priority_of(stream),
            begin,
            places: Vec::with_capacity(nodes.len()),
            chains: Vec::new(),
            ends: Vec::new(),
            program: false,
            last_recording: 0,
        };
        let placed = nodes
            .iter()
            .try_for_each(|node| self.place_node(&mut placing, node));
        if let Err(failure) = placed {
            // Nothing of it has begun yet: no time has passed since it was put together.
            self.launches.truncate(launched);
            self.timeline.abandon(&placing.chains);
            for chain in placing.chains {
                self.timeline.remove(chain);
            }
            return Err(failure);
        }
        let Placing {
            chains,
            ends,
            program,
            ..
        } = placing;
        let issued = self.issue_time();
        let end = self.timeline.push(key, Work::Join(chains), issued, ends);
        if !program {
            return Ok(Reply::Step(None));
        }
        self.graph_runs.insert(
            launch,
            GraphRun {
                context,
                nodes,
                end: (key, end),
            },
        );
        self.next_step(launch)
    }

    pub(super) fn graph_continue(&mut self, step: ProgramStep) -> CallResult<Reply> {
        if !self.timeline.performed(step, self.now) {
            return fail(
                CuResult::INVALID_VALUE,
                format!("node {} of launch {} is not due", step.node, step.launch),
            );
        }
        self.next_step(step.launch)
    }

    /// Lets time pass until the program has something to do for a launch, or nothing more.
    fn next_step(&mut self, launch: u64) -> CallResult<Reply> {
        let Some(run) = self.graph_runs.get(&launch) else {
            return fail(
                CuResult::INVALID_VALUE,
                format!("there is no launch {launch} of a graph"),
            );
        };
        let (nodes, (stream, position)) = (run.nodes.clone(), run.end);
        if let Err(failure) = self.advance(Goal::Step(launch, stream, position)) {
            self.graph_runs.remove(&launch);
            return Err(failure);
        }
        self.now = self.now.max(self.timeline.now());
        let step = self.timeline.due_step(launch);
        match step {
            None => drop(self.graph_runs.remove(&launch)),
            Some(step) => {
                let node = nodes.get(step.node as usize).map(|node| &node.work);
                if let Some(GraphWork::Copy(copy)) = node {
                    self.program_writes(copy)?;
                }
            }
        }
        Ok(Reply::Step(step))
    }

    /// Puts one node where it runs.
    fn place_node(&mut self, placing: &mut Placing, node: &GraphNode) -> CallResult<()> {
        let after: Vec<(StreamKey, Position)> = node
            .after
            .iter()
            .map(|before| placing.places[*before as usize])
            .collect();
        // It continues the chain of a node that nothing has followed yet, or begins one.
        let continued = after
            .iter()
            .find(|(chain, position)| {
                *chain != placing.begin.0 && self.timeline.end(*chain) == *position
            })
            .map(|(chain, _)| *chain);
        let chain = match continued {
            Some(chain) => chain,
            None => {
                let chain = self.fresh();
                self.timeline.create(chain, placing.gpu);
                placing.chains.push(chain);
                chain
            }
        };
        let after = if after.is_empty() {
            vec![placing.begin]
        } else {
            after
        };
        let work = self.node_work(placing, node, chain)?;
        let mut position = 0;
        let mut after = Some(after);
        for piece in work {
            let after = after.take().unwrap_or_default();
            let issued = self.now + self.timeline.command();
            position = self.timeline.push(chain, piece, issued, after);
        }
        if let GraphWork::Record(event) = node.work {
            self.note_record(event, placing.last_recording, chain, position);
        }
        placing.ends.retain(|(ended, _)| *ended != chain);
        placing.ends.push((chain, position));
        placing.places.push((chain, position));
        Ok(())
    }

    /// What a node is made of, at least one piece.
    fn node_work(
        &mut self,
        placing: &mut Placing,
        node: &GraphNode,
        chain: StreamKey,
    ) -> CallResult<Vec<Work>> {
        let step = ProgramStep {
            launch: placing.launch,
            node: placing.places.len() as u32,
        };
        let nothing = || vec![Work::Instant(Effect::None)];
        Ok(match &node.work {
            GraphWork::Empty => nothing(),
            GraphWork::Kernel(launch) => {
                let mut launch = launch.clone();
                launch.context = placing.context;
                let mut work = self.prepare(&launch, chain, placing.priority)?;
                work.launch.of_graph = true;
                // Its code was brought when the graph was made.
                self.is_first_launch(launch.function);
                let space = work.launch.cooperative;
                let free = space.map(|address| Work::Instant(Effect::Free { address }));
                [Some(Work::Kernel(Box::new(work))), free]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            GraphWork::Copy(copy) => match self.transfer(copy)? {
                None => nothing(),
                Some((takes, Effect::None)) => {
                    placing.program = true;
                    vec![
                        Work::Transfer {
                            takes,
                            effect: Effect::None,
                        },
                        Work::Program(step),
                    ]
                }
                Some((takes, effect)) => vec![Work::Transfer { takes, effect }],
            },
            GraphWork::Fill(fill) => match self.filling(fill)? {
                None => nothing(),
                Some((takes, effect)) => vec![Work::Transfer { takes, effect }],
            },
            GraphWork::Program => {
                placing.program = true;
                vec![Work::Program(step)]
            }
            GraphWork::Record(event) => {
                self.event(*event)?;
                let recording = self.fresh();
                placing.last_recording = recording;
                vec![Work::Record { recording }]
            }
            GraphWork::Wait(event) => match self.event(*event)?.recorded {
                Some((_, stream, position)) => vec![Work::Wait { stream, position }],
                None => nothing(),
            },
            GraphWork::Value(value) => {
                self.check_value(value)?;
                self.value_is_allowed(placing.context, value)?;
                vec![Work::Value(*value)]
            }
        })
    }
}

/// A launch while its nodes are put into streams.
struct Placing {
    launch: u64,
    context: ContextHandle,
    /// The GPU of the context.
    gpu: u32,
    /// Of the stream that it is launched in.
    priority: i32,
    begin: (StreamKey, Position),
    /// Where each node ends.
    places: Vec<(StreamKey, Position)>,
    /// Streams made for it.
    chains: Vec<StreamKey>,
    /// The last point of each chain.
    ends: Vec<(StreamKey, Position)>,
    /// Whether it needs the program.
    program: bool,
    /// Number of the recording made last.
    last_recording: u64,
}
