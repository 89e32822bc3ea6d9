//! Graphs and their nodes.

use crate::api::Side;
use crate::api::{Extras, Parameters3};
use crate::fair_mutex::{FairGuard, FairMutex};
use crate::opaque::{self, Kind};
use crate::process::lock;
use crate::registry::Function;
use crate::types::{Address, Dim3, HostFunction};
use lockstep_protocol::{CuResult, Extent, ValueWork};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

/// Work of a node.
#[derive(Clone)]
pub enum NodeWork {
    /// A kernel.
    Kernel(KernelNode),
    /// A copy.
    Copy(CopyNode),
    /// A fill.
    Fill(FillNode),
    /// A host function.
    Host(HostNode),
    /// Another graph, by its number.
    Child(u64),
    /// It only joins dependencies.
    Empty,
    /// Wait for an event.
    Wait(Address),
    /// Record an event.
    Record(Address),
    /// Allocate memory; it is there from the node's making on.
    Allocate(Address, usize),
    /// Free it again.
    Free(Address),
    /// Wait for values in memory and write some.
    Values(Vec<ValueWork>),
}

impl NodeWork {
    /// `CUgraphNodeType`.
    pub fn kind(&self) -> u32 {
        match self {
            Self::Kernel(_) => 0,
            Self::Copy(_) => 1,
            Self::Fill(_) => 2,
            Self::Host(_) => 3,
            Self::Child(_) => 4,
            Self::Empty => 5,
            Self::Wait(_) => 6,
            Self::Record(_) => 7,
            Self::Allocate(..) => 10,
            Self::Free(_) => 11,
            Self::Values(_) => 12,
        }
    }
}

/// A kernel node.
#[derive(Clone)]
pub struct KernelNode {
    /// What the program named it by.
    pub handle: Address,
    /// The kernel.
    pub function: Arc<Function>,
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Dynamic shared memory.
    pub shared: u32,
    /// The packed arguments, and pointers into them for whoever asks.
    pub arguments: Arc<PackedArguments>,
    /// Attributes.
    pub extras: Extras,
}

/// Arguments that stay where they are, so that pointers to them can be handed out.
pub struct PackedArguments {
    /// The parameter block.
    pub block: Box<[u8]>,
    /// The address of each argument in it.
    pub pointers: Box<[Address]>,
}

/// A copy node.
#[derive(Clone, Copy)]
pub struct CopyNode {
    /// Destination.
    pub to: Side,
    /// Source.
    pub from: Side,
    /// Width, height and depth that are copied.
    pub extent: Extent,
    /// As the program said it.
    pub parameters: Parameters3,
}

/// A fill node: `cudaMemsetParams`, `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FillNode {
    /// First byte to fill.
    pub address: Address,
    /// From row to row.
    pub pitch: usize,
    /// The pattern.
    pub value: u32,
    /// Its size.
    pub element: u32,
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// A host node: `cudaHostNodeParams`, `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostNode {
    /// The function.
    pub function: HostFunction,
    /// Its argument.
    pub data: *mut c_void,
}

// SAFETY: the pointer is only handed to the program's own function; what it points to is the
// program's business.
unsafe impl Send for HostNode {}

/// A node.
#[derive(Clone)]
pub struct Node {
    /// Its work.
    pub work: NodeWork,
    /// Nodes of the same graph that come before, in the order in which they were said.
    pub after: Vec<u64>,
    /// The node that it was cloned from.
    pub origin: Option<u64>,
}

/// A graph.
#[derive(Clone, Default)]
pub struct Graph {
    /// Nodes by number, which is the order of their making.
    pub nodes: BTreeMap<u64, Node>,
    /// The graph that it was cloned from.
    pub origin: Option<u64>,
    /// The node that it is the child graph of.
    pub parent: Option<u64>,
    /// User objects that it holds, with counts.
    pub objects: BTreeMap<u64, u32>,
}

/// All graphs.
pub struct Graphs {
    next: u64,
    /// By number.
    pub graphs: BTreeMap<u64, Graph>,
    /// The graph of each node.
    pub owners: BTreeMap<u64, u64>,
}

static GRAPHS: FairMutex<Graphs> = FairMutex::new(Graphs {
    next: 1,
    graphs: BTreeMap::new(),
    owners: BTreeMap::new(),
});

/// All graphs of the process.
pub fn graphs() -> FairGuard<'static, Graphs> {
    lock(&GRAPHS)
}

/// The number of a graph.
pub fn decode_graph(handle: Address) -> Result<u64, CuResult> {
    opaque::decode(Kind::Graph, handle).ok_or(CuResult::INVALID_VALUE)
}

/// The handle of a graph.
pub fn graph_handle(graph: u64) -> Address {
    opaque::encode(Kind::Graph, graph)
}

/// The number of a node.
pub fn decode_node(handle: Address) -> Result<u64, CuResult> {
    opaque::decode(Kind::GraphNode, handle).ok_or(CuResult::INVALID_VALUE)
}

/// The handle of a node.
pub fn node_handle(node: u64) -> Address {
    opaque::encode(Kind::GraphNode, node)
}

impl Graphs {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// An empty graph.
    pub fn create(&mut self) -> u64 {
        let number = self.number();
        self.graphs.insert(number, Graph::default());
        number
    }

    /// A graph.
    pub fn graph(&self, graph: u64) -> Result<&Graph, CuResult> {
        self.graphs.get(&graph).ok_or(CuResult::INVALID_VALUE)
    }

    /// A graph, to change it.
    pub fn graph_mut(&mut self, graph: u64) -> Result<&mut Graph, CuResult> {
        self.graphs.get_mut(&graph).ok_or(CuResult::INVALID_VALUE)
    }

    /// A node.
    pub fn node(&self, node: u64) -> Result<&Node, CuResult> {
        let graph = self.owners.get(&node).ok_or(CuResult::INVALID_VALUE)?;
        let graph = self.graph(*graph)?;
        graph.nodes.get(&node).ok_or(CuResult::INVALID_VALUE)
    }

    /// A node, to change it.
    pub fn node_mut(&mut self, node: u64) -> Result<&mut Node, CuResult> {
        let graph = *self.owners.get(&node).ok_or(CuResult::INVALID_VALUE)?;
        let graph = self.graph_mut(graph)?;
        graph.nodes.get_mut(&node).ok_or(CuResult::INVALID_VALUE)
    }

    /// Adds a node after others of the same graph.
    pub fn add(&mut self, graph: u64, work: NodeWork, after: Vec<u64>) -> Result<u64, CuResult> {
        let found = self.graph(graph)?;
        let mut unique: Vec<u64> = Vec::with_capacity(after.len());
        for node in after {
            if !found.nodes.contains_key(&node) || unique.contains(&node) {
                return Err(CuResult::INVALID_VALUE);
            }
            unique.push(node);
        }
        let number = self.number();
        let node = Node {
            work,
            after: unique,
            origin: None,
        };
        if let NodeWork::Child(child) = node.work
            && let Some(child) = self.graphs.get_mut(&child)
        {
            child.parent = Some(number);
        }
        self.graph_mut(graph)?.nodes.insert(number, node);
        self.owners.insert(number, graph);
        Ok(number)
    }

    /// Adds edges; one that is there, or that closes a circle, is refused.
    pub fn connect(&mut self, graph: u64, edges: &[(u64, u64)]) -> Result<(), CuResult> {
        let nodes = &self.graph(graph)?.nodes;
        for (from, to) in edges {
            let (Some(_), Some(later)) = (nodes.get(from), nodes.get(to)) else {
                return Err(CuResult::INVALID_VALUE);
            };
            if from == to || later.after.contains(from) {
                return Err(CuResult::INVALID_VALUE);
            }
        }
        for (from, to) in edges {
            self.node_mut(*to)?.after.push(*from);
        }
        Ok(())
    }

    /// Removes edges, all of which must be there.
    pub fn disconnect(&mut self, graph: u64, edges: &[(u64, u64)]) -> Result<(), CuResult> {
        let nodes = &self.graph(graph)?.nodes;
        let there =
            |(from, to): &(u64, u64)| nodes.get(to).is_some_and(|to| to.after.contains(from));
        if !edges.iter().all(there) {
            return Err(CuResult::INVALID_VALUE);
        }
        for (from, to) in edges {
            self.node_mut(*to)?.after.retain(|before| before != from);
        }
        Ok(())
    }

    /// Nodes that come right after one.
    pub fn dependents(&self, node: u64) -> Result<Vec<u64>, CuResult> {
        let graph = self.owners.get(&node).ok_or(CuResult::INVALID_VALUE)?;
        let nodes = &self.graph(*graph)?.nodes;
        Ok(nodes
            .iter()
            .filter(|(_, later)| later.after.contains(&node))
            .map(|(number, _)| *number)
            .collect())
    }

    /// Removes a node with its edges.
    pub fn remove_node(&mut self, node: u64) -> Result<(), CuResult> {
        let graph = *self.owners.get(&node).ok_or(CuResult::INVALID_VALUE)?;
        let removed = self.graph_mut(graph)?.nodes.remove(&node);
        self.owners.remove(&node);
        if let Some(NodeWork::Child(child)) = removed.map(|node| node.work) {
            self.remove(child);
        }
        for later in self.graph_mut(graph)?.nodes.values_mut() {
            later.after.retain(|before| *before != node);
        }
        Ok(())
    }

    /// Removes a graph with its nodes and child graphs.
    pub fn remove(&mut self, graph: u64) -> Option<Graph> {
        let removed = self.graphs.remove(&graph)?;
        for (node, contents) in &removed.nodes {
            self.owners.remove(node);
            if let NodeWork::Child(child) = contents.work {
                self.remove(child);
            }
        }
        Some(removed)
    }

    /// A copy of a graph with child graphs of its own; every node knows its origin.
    pub fn clone_graph(&mut self, graph: u64) -> Result<u64, CuResult> {
        let source = self.graph(graph)?.clone();
        let copy = self.create();
        let mut renamed: BTreeMap<u64, u64> = BTreeMap::new();
        for number in source.nodes.keys() {
            renamed.insert(*number, self.number());
        }
        let mut nodes = BTreeMap::new();
        for (number, node) in source.nodes {
            let new = renamed[&number];
            let work = match node.work {
                NodeWork::Child(child) => {
                    let child = self.clone_graph(child)?;
                    self.graph_mut(child)?.parent = Some(new);
                    NodeWork::Child(child)
                }
                other => other,
            };
            let after = node.after.iter().map(|before| renamed[before]).collect();
            self.owners.insert(new, copy);
            nodes.insert(
                new,
                Node {
                    work,
                    after,
                    origin: Some(number),
                },
            );
        }
        let made = self.graph_mut(copy)?;
        made.nodes = nodes;
        made.origin = Some(graph);
        made.objects = source.objects;
        Ok(copy)
    }

    /// Nodes in an order in which each follows what it depends on, the oldest first; fails
    /// where edges close a circle.
    pub fn ordered(&self, graph: u64) -> Result<Vec<u64>, CuResult> {
        let nodes = &self.graph(graph)?.nodes;
        let mut missing: BTreeMap<u64, usize> = nodes
            .iter()
            .map(|(number, node)| (*number, node.after.len()))
            .collect();
        let mut later: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (number, node) in nodes {
            for before in &node.after {
                later.entry(*before).or_default().push(*number);
            }
        }
        let mut ready: std::collections::BTreeSet<u64> = missing
            .iter()
            .filter(|(_, count)| **count == 0)
            .map(|(number, _)| *number)
            .collect();
        let mut order = Vec::with_capacity(nodes.len());
        while let Some(number) = ready.pop_first() {
            order.push(number);
            for next in later.get(&number).into_iter().flatten() {
                if let Some(count) = missing.get_mut(next) {
                    *count -= 1;
                    if *count == 0 {
                        ready.insert(*next);
                    }
                }
            }
        }
        if order.len() == nodes.len() {
            Ok(order)
        } else {
            Err(CuResult::INVALID_VALUE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Graphs {
        Graphs {
            next: 1,
            graphs: BTreeMap::new(),
            owners: BTreeMap::new(),
        }
    }

    #[test]
    fn order_follows_edges_and_circles_are_refused() {
        let mut graphs = empty();
        let graph = graphs.create();
        let a = graphs.add(graph, NodeWork::Empty, vec![]).unwrap();
        let b = graphs.add(graph, NodeWork::Empty, vec![]).unwrap();
        let c = graphs.add(graph, NodeWork::Empty, vec![a]).unwrap();
        graphs.connect(graph, &[(c, b)]).unwrap();
        assert_eq!(graphs.ordered(graph), Ok(vec![a, c, b]));
        assert_eq!(graphs.dependents(a), Ok(vec![c]));
        assert!(graphs.connect(graph, &[(c, b)]).is_err());
        graphs.connect(graph, &[(b, a)]).unwrap();
        assert!(graphs.ordered(graph).is_err());
        graphs.disconnect(graph, &[(b, a)]).unwrap();
        assert!(graphs.disconnect(graph, &[(b, a)]).is_err());
        graphs.remove_node(c).unwrap();
        assert_eq!(graphs.ordered(graph), Ok(vec![a, b]));
        assert!(graphs.add(graph, NodeWork::Empty, vec![c]).is_err());
    }

    #[test]
    fn a_clone_has_nodes_and_child_graphs_of_its_own() {
        let mut graphs = empty();
        let child = graphs.create();
        graphs.add(child, NodeWork::Empty, vec![]).unwrap();
        let graph = graphs.create();
        let first = graphs.add(graph, NodeWork::Empty, vec![]).unwrap();
        let second = graphs
            .add(graph, NodeWork::Child(child), vec![first])
            .unwrap();
        let copy = graphs.clone_graph(graph).unwrap();
        let nodes: Vec<(u64, Node)> = graphs
            .graph(copy)
            .unwrap()
            .nodes
            .clone()
            .into_iter()
            .collect();
        assert_eq!(nodes[0].1.origin, Some(first));
        assert_eq!(nodes[1].1.origin, Some(second));
        assert_eq!(nodes[1].1.after, [nodes[0].0]);
        let NodeWork::Child(other) = nodes[1].1.work else {
            panic!("not a child graph");
        };
        assert_ne!(other, child);
        assert_eq!(graphs.graphs.len(), 4);
        graphs.remove(copy);
        assert_eq!(graphs.graphs.len(), 2);
        assert_eq!(graphs.owners.len(), 3);
    }
}
