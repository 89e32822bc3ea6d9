//! Graphs: their making, their nodes and edges.

use super::graph_memory;
use crate::boundary::{driver, runtime};
use crate::context::{check_initialized, current_for_runtime};
use crate::graph::model::{
    Graphs, NodeWork, decode_graph, decode_node, graph_handle, graphs, node_handle,
};
use crate::graph::objects;
use crate::options;
use crate::types::{Address, In, Out, Text};
use lockstep_protocol::CuResult;
use lockstep_protocol::options::Group;
use std::fmt::Write;

/// `cudaGraphEdgeData`: all zero means that one node follows the end of the other.
pub type EdgeData = [u8; 8];

fn create(graph: Out<Address>, flags: u32) -> Result<(), CuResult> {
    graph.check()?;
    if flags != 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    graph.set(graph_handle(graphs().create()))
}

fn destroy(handle: Address) -> Result<(), CuResult> {
    let number = decode_graph(handle)?;
    let mut all = graphs();
    if all.graph(number)?.parent.is_some() {
        // A child graph goes with its node.
        return Err(CuResult::INVALID_VALUE);
    }
    let removed = all.remove(number);
    // Instances and clones still use what the nodes allocated.
    let addresses: Vec<Address> = removed
        .iter()
        .flat_map(|graph| graph.nodes.values())
        .filter_map(|node| match node.work {
            NodeWork::Allocate(address, _) => Some(address),
            _ => None,
        })
        .filter(|address| !uses(&all, *address))
        .collect();
    drop(all);
    graph_memory::release(addresses.into_iter());
    for (object, count) in removed.into_iter().flat_map(|graph| graph.objects) {
        objects::release(object, count)?;
    }
    Ok(())
}

fn uses(graphs: &Graphs, address: Address) -> bool {
    let mut nodes = graphs
        .graphs
        .values()
        .flat_map(|graph| graph.nodes.values());
    nodes.any(|node| matches!(node.work, NodeWork::Allocate(other, _) if other == address))
}

fn copy(clone: Out<Address>, original: Address) -> Result<(), CuResult> {
    clone.check()?;
    let mut graphs = graphs();
    let made = graphs.clone_graph(decode_graph(original)?)?;
    for (object, count) in graphs.graph(made)?.objects.clone() {
        objects::retain(object, count)?;
    }
    clone.set(graph_handle(made))
}

fn find_in_clone(found: Out<Address>, node: Address, clone: Address) -> Result<(), CuResult> {
    let node = decode_node(node)?;
    let graphs = graphs();
    let nodes = &graphs.graph(decode_graph(clone)?)?.nodes;
    let copy = nodes.iter().find(|(_, copy)| copy.origin == Some(node));
    let (copy, _) = copy.ok_or(CuResult::INVALID_VALUE)?;
    found.set(node_handle(*copy))
}

/// Answers a list: how many there are if no place is given, else as many as fit.
fn list<T: Copy>(items: &[T], place: Out<T>, count: Out<usize>, none: T) -> Result<(), CuResult> {
    if place.pointer().is_null() {
        return count.set(items.len());
    }
    let room = count.current()?;
    for index in 0..room {
        let item = items.get(index).copied().unwrap_or(none);
        place.element(index).set(item)?;
    }
    count.set(items.len().min(room))
}

fn handles(nodes: impl Iterator<Item = u64>) -> Vec<Address> {
    nodes.map(node_handle).collect()
}

fn nodes(graph: Address, place: Out<Address>, count: Out<usize>) -> Result<(), CuResult> {
    let graphs = graphs();
    let nodes = &graphs.graph(decode_graph(graph)?)?.nodes;
    list(&handles(nodes.keys().copied()), place, count, 0)
}

fn roots(graph: Address, place: Out<Address>, count: Out<usize>) -> Result<(), CuResult> {
    let graphs = graphs();
    let nodes = graphs.graph(decode_graph(graph)?)?.nodes.iter();
    let roots = nodes.filter(|(_, node)| node.after.is_empty());
    list(&handles(roots.map(|(number, _)| *number)), place, count, 0)
}

fn edges(
    graph: Address,
    from: Out<Address>,
    to: Out<Address>,
    data: Out<EdgeData>,
    count: Out<usize>,
) -> Result<(), CuResult> {
    let graphs = graphs();
    let nodes = &graphs.graph(decode_graph(graph)?)?.nodes;
    let edges: Vec<(u64, u64)> = nodes
        .iter()
        .flat_map(|(number, node)| node.after.iter().map(|before| (*before, *number)))
        .collect();
    let room = if from.pointer().is_null() {
        usize::MAX
    } else {
        count.current()?
    };
    if to.pointer().is_null() != from.pointer().is_null() {
        return Err(CuResult::INVALID_VALUE);
    }
    if !to.pointer().is_null() {
        for index in 0..room {
            let edge = edges.get(index);
            let name = |node: Option<u64>| node.map_or(0, node_handle);
            from.element(index).set(name(edge.map(|edge| edge.0)))?;
            to.element(index).set(name(edge.map(|edge| edge.1)))?;
            if !data.pointer().is_null() {
                data.element(index).set([0; 8])?;
            }
        }
    }
    count.set(edges.len().min(room))
}

fn dependencies(
    node: Address,
    place: Out<Address>,
    data: Out<EdgeData>,
    count: Out<usize>,
) -> Result<(), CuResult> {
    let graphs = graphs();
    let before = handles(graphs.node(decode_node(node)?)?.after.iter().copied());
    list(&before, place, count, 0)?;
    clear(data, place, count)
}

fn dependents(
    node: Address,
    place: Out<Address>,
    data: Out<EdgeData>,
    count: Out<usize>,
) -> Result<(), CuResult> {
    let after = graphs().dependents(decode_node(node)?)?;
    list(&handles(after.into_iter()), place, count, 0)?;
    clear(data, place, count)
}

fn clear(data: Out<EdgeData>, place: Out<Address>, count: Out<usize>) -> Result<(), CuResult> {
    if !data.pointer().is_null() && !place.pointer().is_null() {
        for index in 0..count.current()? {
            data.element(index).set([0; 8])?;
        }
    }
    Ok(())
}

fn pairs(
    from: In<Address>,
    to: In<Address>,
    data: In<EdgeData>,
    count: usize,
) -> Result<Vec<(u64, u64)>, CuResult> {
    check_edges(data, count)?;
    (0..count)
        .map(|index| Ok((decode_node(from.at(index)?)?, decode_node(to.at(index)?)?)))
        .collect()
}

/// `cudaGraphDependencyTypeProgrammatic`.
const PROGRAMMATIC: u32 = 1;

/// Edges that let a kernel begin before another ends are taken as whole ones, which is
/// allowed: a program may not lean on overlap.
pub fn check_edges(data: In<EdgeData>, count: usize) -> Result<(), CuResult> {
    for index in 0..count {
        if data.is_null() {
            break;
        }
        let [from_port, to_port, kind, ..] = data.at(index)?;
        if to_port != 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        if from_port != 0 || kind != 0 {
            options::accept(Group::GraphEdge, PROGRAMMATIC)?;
        }
    }
    Ok(())
}

/// Nodes that the program lists.
pub fn listed(nodes: In<Address>, count: usize) -> Result<Vec<u64>, CuResult> {
    (0..count)
        .map(|index| decode_node(nodes.at(index)?))
        .collect()
}

fn kind(node: Address, answer: Out<u32>) -> Result<(), CuResult> {
    answer.set(graphs().node(decode_node(node)?)?.work.kind())
}

fn child(node: Address, answer: Out<Address>) -> Result<(), CuResult> {
    match graphs().node(decode_node(node)?)?.work {
        NodeWork::Child(graph) => answer.set(graph_handle(graph)),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

fn owner(node: Address, answer: Out<Address>) -> Result<(), CuResult> {
    let node = decode_node(node)?;
    let graph = graphs().owners.get(&node).copied();
    answer.set(graph_handle(graph.ok_or(CuResult::INVALID_VALUE)?))
}

/// The place of a node in its graph.
fn local_identity(node: Address, answer: Out<u32>) -> Result<(), CuResult> {
    let node = decode_node(node)?;
    let graphs = graphs();
    let graph = graphs.owners.get(&node).ok_or(CuResult::INVALID_VALUE)?;
    let nodes = &graphs.graph(*graph)?.nodes;
    answer.set(nodes.keys().take_while(|other| **other != node).count() as u32)
}

fn tools_identity(node: Address, answer: Out<u64>) -> Result<(), CuResult> {
    let node = decode_node(node)?;
    graphs().node(node)?;
    answer.set(node)
}

fn identity(graph: Address, answer: Out<u32>) -> Result<(), CuResult> {
    let graph = decode_graph(graph)?;
    graphs().graph(graph)?;
    answer.set(graph as u32)
}

/// Writes a graph in the words of Graphviz.
fn print(graph: Address, path: Text, flags: u32) -> Result<(), CuResult> {
    const KINDS: [&str; 13] = [
        "KERNEL",
        "MEMCPY",
        "MEMSET",
        "HOST",
        "GRAPH",
        "EMPTY",
        "EVENT_WAIT",
        "EVENT_RECORD",
        "EXT_SEMAS_SIGNAL",
        "EXT_SEMAS_WAIT",
        "MEM_ALLOC",
        "MEM_FREE",
        "BATCH_MEM_OP",
    ];
    let _ = flags; // How much to say; this says the kinds and the kernels.
    let graphs = graphs();
    let number = decode_graph(graph)?;
    let nodes = &graphs.graph(number)?.nodes;
    let mut text = format!("digraph graph_{number} {{\n");
    for (node, contents) in nodes {
        let kind = KINDS[contents.work.kind() as usize];
        let name = match &contents.work {
            NodeWork::Kernel(kernel) => {
                format!(" {}", crate::process::lock(&kernel.function.info).name)
            }
            _ => String::new(),
        };
        let _ = writeln!(text, "  node_{node} [label=\"{kind}{name}\"];");
        for before in &contents.after {
            let _ = writeln!(text, "  node_{before} -> node_{node};");
        }
    }
    text.push_str("}\n");
    std::fs::write(path.get()?, text).map_err(|_| CuResult::OPERATING_SYSTEM)
}

runtime! {
    fn cudaGraphCreate(graph: Out<Address>, flags: u32) {
        current_for_runtime()?;
        Ok(create(graph, flags)?)
    }

    fn cudaGraphDestroy(graph: Address) {
        Ok(destroy(graph)?)
    }

    fn cudaGraphClone(clone: Out<Address>, original: Address) {
        Ok(copy(clone, original)?)
    }

    fn cudaGraphNodeFindInClone(found: Out<Address>, node: Address, clone: Address) {
        Ok(find_in_clone(found, node, clone)?)
    }

    fn cudaGraphGetNodes(graph: Address, place: Out<Address>, count: Out<usize>) {
        Ok(nodes(graph, place, count)?)
    }

    fn cudaGraphGetRootNodes(graph: Address, place: Out<Address>, count: Out<usize>) {
        Ok(roots(graph, place, count)?)
    }

    fn cudaGraphGetEdges(graph: Address, from: Out<Address>, to: Out<Address>, count: Out<usize>) {
        Ok(edges(graph, from, to, Out::at(0), count)?)
    }

    fn cudaGraphGetEdges_v2(graph: Address, from: Out<Address>, to: Out<Address>, data: Out<EdgeData>, count: Out<usize>) {
        Ok(edges(graph, from, to, data, count)?)
    }

    fn cudaGraphNodeGetDependencies(node: Address, place: Out<Address>, count: Out<usize>) {
        Ok(dependencies(node, place, Out::at(0), count)?)
    }

    fn cudaGraphNodeGetDependencies_v2(node: Address, place: Out<Address>, data: Out<EdgeData>, count: Out<usize>) {
        Ok(dependencies(node, place, data, count)?)
    }

    fn cudaGraphNodeGetDependentNodes(node: Address, place: Out<Address>, count: Out<usize>) {
        Ok(dependents(node, place, Out::at(0), count)?)
    }

    fn cudaGraphNodeGetDependentNodes_v2(node: Address, place: Out<Address>, data: Out<EdgeData>, count: Out<usize>) {
        Ok(dependents(node, place, data, count)?)
    }

    fn cudaGraphAddDependencies(graph: Address, from: In<Address>, to: In<Address>, count: usize) {
        let edges = pairs(from, to, In(std::ptr::null()), count)?;
        Ok(graphs().connect(decode_graph(graph)?, &edges)?)
    }

    fn cudaGraphAddDependencies_v2(graph: Address, from: In<Address>, to: In<Address>, data: In<EdgeData>, count: usize) {
        let edges = pairs(from, to, data, count)?;
        Ok(graphs().connect(decode_graph(graph)?, &edges)?)
    }

    fn cudaGraphRemoveDependencies(graph: Address, from: In<Address>, to: In<Address>, count: usize) {
        let edges = pairs(from, to, In(std::ptr::null()), count)?;
        Ok(graphs().disconnect(decode_graph(graph)?, &edges)?)
    }

    fn cudaGraphRemoveDependencies_v2(graph: Address, from: In<Address>, to: In<Address>, data: In<EdgeData>, count: usize) {
        let edges = pairs(from, to, data, count)?;
        Ok(graphs().disconnect(decode_graph(graph)?, &edges)?)
    }

    fn cudaGraphDestroyNode(node: Address) {
        Ok(graphs().remove_node(decode_node(node)?)?)
    }

    fn cudaGraphNodeGetType(node: Address, answer: Out<u32>) {
        Ok(kind(node, answer)?)
    }

    fn cudaGraphChildGraphNodeGetGraph(node: Address, graph: Out<Address>) {
        Ok(child(node, graph)?)
    }

    fn cudaGraphNodeGetContainingGraph(node: Address, graph: Out<Address>) {
        Ok(owner(node, graph)?)
    }

    fn cudaGraphNodeGetLocalId(node: Address, answer: Out<u32>) {
        Ok(local_identity(node, answer)?)
    }

    fn cudaGraphNodeGetToolsId(node: Address, answer: Out<u64>) {
        Ok(tools_identity(node, answer)?)
    }

    fn cudaGraphGetId(graph: Address, answer: Out<u32>) {
        Ok(identity(graph, answer)?)
    }

    fn cudaGraphDebugDotPrint(graph: Address, path: Text, flags: u32) {
        Ok(print(graph, path, flags)?)
    }
}

driver! {
    fn cuGraphCreate(graph: Out<Address>, flags: u32) {
        check_initialized()?;
        create(graph, flags)
    }

    fn cuGraphDestroy(graph: Address) {
        destroy(graph)
    }

    fn cuGraphClone(clone: Out<Address>, original: Address) {
        copy(clone, original)
    }

    fn cuGraphNodeFindInClone(found: Out<Address>, node: Address, clone: Address) {
        find_in_clone(found, node, clone)
    }

    fn cuGraphGetNodes(graph: Address, place: Out<Address>, count: Out<usize>) {
        nodes(graph, place, count)
    }

    fn cuGraphGetRootNodes(graph: Address, place: Out<Address>, count: Out<usize>) {
        roots(graph, place, count)
    }

    fn cuGraphGetEdges(graph: Address, from: Out<Address>, to: Out<Address>, count: Out<usize>) {
        edges(graph, from, to, Out::at(0), count)
    }

    fn cuGraphGetEdges_v2(graph: Address, from: Out<Address>, to: Out<Address>, data: Out<EdgeData>, count: Out<usize>) {
        edges(graph, from, to, data, count)
    }

    fn cuGraphNodeGetDependencies(node: Address, place: Out<Address>, count: Out<usize>) {
        dependencies(node, place, Out::at(0), count)
    }

    fn cuGraphNodeGetDependencies_v2(node: Address, place: Out<Address>, data: Out<EdgeData>, count: Out<usize>) {
        dependencies(node, place, data, count)
    }

    fn cuGraphNodeGetDependentNodes(node: Address, place: Out<Address>, count: Out<usize>) {
        dependents(node, place, Out::at(0), count)
    }

    fn cuGraphNodeGetDependentNodes_v2(node: Address, place: Out<Address>, data: Out<EdgeData>, count: Out<usize>) {
        dependents(node, place, data, count)
    }

    fn cuGraphAddDependencies(graph: Address, from: In<Address>, to: In<Address>, count: usize) {
        let edges = pairs(from, to, In(std::ptr::null()), count)?;
        graphs().connect(decode_graph(graph)?, &edges)
    }

    fn cuGraphAddDependencies_v2(graph: Address, from: In<Address>, to: In<Address>, data: In<EdgeData>, count: usize) {
        let edges = pairs(from, to, data, count)?;
        graphs().connect(decode_graph(graph)?, &edges)
    }

    fn cuGraphRemoveDependencies(graph: Address, from: In<Address>, to: In<Address>, count: usize) {
        let edges = pairs(from, to, In(std::ptr::null()), count)?;
        graphs().disconnect(decode_graph(graph)?, &edges)
    }

    fn cuGraphRemoveDependencies_v2(graph: Address, from: In<Address>, to: In<Address>, data: In<EdgeData>, count: usize) {
        let edges = pairs(from, to, data, count)?;
        graphs().disconnect(decode_graph(graph)?, &edges)
    }

    fn cuGraphDestroyNode(node: Address) {
        graphs().remove_node(decode_node(node)?)
    }

    fn cuGraphNodeGetType(node: Address, answer: Out<u32>) {
        kind(node, answer)
    }

    fn cuGraphChildGraphNodeGetGraph(node: Address, graph: Out<Address>) {
        child(node, graph)
    }

    fn cuGraphNodeGetContainingGraph(node: Address, graph: Out<Address>) {
        owner(node, graph)
    }

    fn cuGraphNodeGetLocalId(node: Address, answer: Out<u32>) {
        local_identity(node, answer)
    }

    fn cuGraphNodeGetToolsId(node: Address, answer: Out<u64>) {
        tools_identity(node, answer)
    }

    fn cuGraphGetId(graph: Address, answer: Out<u32>) {
        identity(graph, answer)
    }

    fn cuGraphDebugDotPrint(graph: Address, path: Text, flags: u32) {
        print(graph, path, flags)
    }
}
