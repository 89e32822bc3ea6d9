//! Nodes of graphs in the runtime's words: adding them, reading and changing what they do.

use super::copy::Parameters3;
use super::graph::listed;
use super::graph_memory;
use super::launch::{Arguments, Extras, check_shape, find_for_runtime, kernel_node, since_13};
use super::launch_attribute::{
    Attribute, CARVEOUT, CLUSTER, COOPERATIVE, PRIORITY, WINDOW, extras,
};
use super::symbol;
use crate::boundary::{RuntimeError, runtime};
use crate::context::current_for_runtime;
use crate::graph::exec;
use crate::graph::model::{
    CopyNode, FillNode, HostNode, KernelNode, NodeWork, decode_graph, decode_node, graphs,
    node_handle,
};
use crate::registry;
use crate::streams::{Defaults, target};
use crate::types::{Address, Dim3, In, Out};
use lockstep_protocol::CuResult;
use lockstep_protocol::layout::region_of;

/// `cudaKernelNodeParams`, and the driver's first `CUDA_KERNEL_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelParameters {
    /// The kernel.
    pub function: Address,
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Dynamic shared memory.
    pub shared: u32,
    /// A pointer to each argument.
    pub arguments: In<In<u8>>,
    /// Or all in one block.
    pub extra: In<Address>,
}

impl KernelParameters {
    /// What a node was made with.
    pub fn of(node: &KernelNode) -> Self {
        Self {
            // What a program names is the host function; captured launches have the kernel itself.
            function: registry::stub_of_kernel(node.handle).unwrap_or(node.handle),
            grid: node.grid,
            block: node.block,
            shared: node.shared,
            arguments: In(node.arguments.pointers.as_ptr().cast()),
            extra: In(std::ptr::null()),
        }
    }

    fn work(self) -> Result<NodeWork, RuntimeError> {
        self.work_with(Extras::default())
    }

    /// The node that these describe, for the runtime.
    pub fn work_with(self, extras: Extras) -> Result<NodeWork, RuntimeError> {
        let context = current_for_runtime()?;
        let function = find_for_runtime(self.function, context)?;
        check_shape(context, self.grid, self.block)?;
        let shape = (self.grid, self.block, self.shared as usize);
        let arguments = Arguments::new(self.arguments, self.extra);
        let node = kernel_node(self.function, &function, shape, arguments, extras)?;
        Ok(NodeWork::Kernel(node))
    }
}

/// Adds a node after others.
pub fn add(
    node: Out<Address>,
    graph: Address,
    after: In<Address>,
    count: usize,
    work: NodeWork,
) -> Result<(), CuResult> {
    node.check()?;
    let made = graphs().add(decode_graph(graph)?, work, listed(after, count)?)?;
    node.set(node_handle(made))
}

/// Changes what a node does; the kind stays.
pub fn change(node: Address, work: NodeWork) -> Result<(), CuResult> {
    let mut graphs = graphs();
    let place = &mut graphs.node_mut(decode_node(node)?)?.work;
    if place.kind() != work.kind() {
        return Err(CuResult::INVALID_VALUE);
    }
    *place = work;
    Ok(())
}

/// Reads a node.
pub fn read<T>(node: Address, read: impl FnOnce(&NodeWork) -> Option<T>) -> Result<T, CuResult> {
    let graphs = graphs();
    read(&graphs.node(decode_node(node)?)?.work).ok_or(CuResult::INVALID_VALUE)
}

/// The copy that parameters describe.
pub fn copy_work(parameters: Parameters3) -> Result<NodeWork, CuResult> {
    let (to, from, extent) = parameters.resolve()?;
    if to.address == 0 || from.address == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    Ok(NodeWork::Copy(CopyNode {
        to,
        from,
        extent,
        parameters,
    }))
}

fn linear_work(to: Address, from: Address, bytes: usize, kind: u32) -> Result<NodeWork, CuResult> {
    copy_work(Parameters3::linear(to, from, bytes, kind))
}

fn symbol_part(symbol: Address, offset: usize, count: usize) -> Result<Address, RuntimeError> {
    let target = target(0, Defaults::Legacy, current_for_runtime)?;
    symbol::part(symbol, target, offset, count)
}

/// The fill that parameters describe.
pub fn fill_work(fill: FillNode) -> Result<NodeWork, CuResult> {
    let row = fill.width.checked_mul(fill.element as usize);
    let too_narrow = fill.height > 1 && row.is_none_or(|row| row > fill.pitch);
    let known = region_of(fill.address as u64).is_some();
    if !matches!(fill.element, 1 | 2 | 4)
        || !known
        || too_narrow
        || !fill.address.is_multiple_of(fill.element as usize)
    {
        return Err(CuResult::INVALID_VALUE);
    }
    Ok(NodeWork::Fill(fill))
}

/// The host function that parameters describe.
pub fn host_work(host: HostNode) -> Result<NodeWork, CuResult> {
    match host.function {
        Some(_) => Ok(NodeWork::Host(host)),
        None => Err(CuResult::INVALID_VALUE),
    }
}

/// A copy of a child graph.
pub fn child_work(graph: Address) -> Result<NodeWork, CuResult> {
    let copy = graphs().clone_graph(decode_graph(graph)?)?;
    Ok(NodeWork::Child(copy))
}

/// `cudaMemAllocNodeParams`, `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AllocationParameters {
    pool: [u64; 11],
    access: Address,
    access_count: usize,
    /// Size in bytes.
    pub bytes: usize,
    /// Address that it was given.
    pub address: Address,
}

fn allocation_work(
    context: lockstep_protocol::ContextHandle,
    bytes: usize,
) -> Result<(NodeWork, Address), CuResult> {
    let address = graph_memory::create(context, bytes)?;
    Ok((NodeWork::Allocate(address, bytes), address))
}

/// Adds a node that allocates, and says where.
pub fn add_allocation(
    node: Out<Address>,
    graph: Address,
    after: In<Address>,
    count: usize,
    parameters: Out<AllocationParameters>,
    context: lockstep_protocol::ContextHandle,
) -> Result<(), CuResult> {
    let mut wanted = parameters.current()?;
    let (work, address) = allocation_work(context, wanted.bytes)?;
    if let Err(error) = add(node, graph, after, count, work) {
        graph_memory::release([address].into_iter());
        return Err(error);
    }
    wanted.address = address;
    parameters.set(wanted)
}

/// What a node allocates.
pub fn allocation(node: Address) -> Result<AllocationParameters, CuResult> {
    let (address, bytes) = read(node, |work| match work {
        NodeWork::Allocate(address, bytes) => Some((*address, *bytes)),
        _ => None,
    })?;
    // Pinned memory of device 0: the only kind that pools have.
    let mut pool = [0; 11];
    pool[0] = 1;
    pool[1] = 1;
    Ok(AllocationParameters {
        pool,
        access: 0,
        access_count: 0,
        bytes,
        address,
    })
}

/// Reads what kinds of nodes have.
pub fn kernel_of(work: &NodeWork) -> Option<KernelParameters> {
    match work {
        NodeWork::Kernel(kernel) => Some(KernelParameters::of(kernel)),
        _ => None,
    }
}

/// Reads a fill.
pub fn fill_of(work: &NodeWork) -> Option<FillNode> {
    match work {
        NodeWork::Fill(fill) => Some(*fill),
        _ => None,
    }
}

/// Reads a host function.
pub fn host_of(work: &NodeWork) -> Option<HostNode> {
    match work {
        NodeWork::Host(host) => Some(*host),
        _ => None,
    }
}

/// Reads a copy.
pub fn copy_of(work: &NodeWork) -> Option<Parameters3> {
    match work {
        NodeWork::Copy(copy) => Some(copy.parameters),
        _ => None,
    }
}

/// Reads what a free node frees.
pub fn freed_by(work: &NodeWork) -> Option<Address> {
    match work {
        NodeWork::Free(address) => Some(*address),
        _ => None,
    }
}

/// Reads the event of a record node.
pub fn recorded_by(work: &NodeWork) -> Option<Address> {
    match work {
        NodeWork::Record(event) => Some(*event),
        _ => None,
    }
}

/// Reads the event of a wait node.
pub fn waited_for_by(work: &NodeWork) -> Option<Address> {
    match work {
        NodeWork::Wait(event) => Some(*event),
        _ => None,
    }
}

/// Reads an attribute of a kernel node.
pub fn get_attribute(node: Address, number: u32, value: Out<u8>) -> Result<(), CuResult> {
    let extras = read(node, |work| match work {
        NodeWork::Kernel(kernel) => Some(kernel.extras),
        _ => None,
    })?;
    let mut words = [0; 16];
    match number {
        COOPERATIVE => words[0] = u32::from(extras.cooperative),
        PRIORITY => words[0] = extras.priority.unwrap_or(0) as u32,
        WINDOW => words = extras.window,
        _ => return Err(CuResult::INVALID_VALUE),
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    value.set_bytes(&bytes)
}

/// Sets an attribute of a kernel node.
pub fn set_attribute(node: Address, number: u32, value: In<[u32; 16]>) -> Result<(), CuResult> {
    let attribute = Attribute::new(number, value.get()?);
    let wanted = extras(In(&raw const attribute), 1)?;
    let mut graphs = graphs();
    let NodeWork::Kernel(kernel) = &mut graphs.node_mut(decode_node(node)?)?.work else {
        return Err(CuResult::INVALID_VALUE);
    };
    match number {
        COOPERATIVE => kernel.extras.cooperative = wanted.cooperative,
        PRIORITY => kernel.extras.priority = wanted.priority,
        WINDOW => kernel.extras.window = wanted.window,
        CLUSTER => kernel.extras.cluster = wanted.cluster,
        CARVEOUT => kernel.extras.carveout = wanted.carveout,
        _ => {}
    }
    Ok(())
}

/// Copies the attributes of one kernel node to another.
pub fn copy_attributes(from: Address, to: Address) -> Result<(), CuResult> {
    let mut graphs = graphs();
    let NodeWork::Kernel(source) = &graphs.node(decode_node(from)?)?.work else {
        return Err(CuResult::INVALID_VALUE);
    };
    let extras = source.extras;
    let NodeWork::Kernel(kernel) = &mut graphs.node_mut(decode_node(to)?)?.work else {
        return Err(CuResult::INVALID_VALUE);
    };
    kernel.extras = extras;
    Ok(())
}

runtime! {
    fn cudaGraphAddKernelNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: In<KernelParameters>) {
        Ok(add(node, graph, after, count, parameters.get()?.work()?)?)
    }

    fn cudaGraphAddKernelNode_v13(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: In<KernelParameters>) {
        Ok(add(node, graph, after, count, since_13(parameters.get()?.work())?)?)
    }

    fn cudaGraphKernelNodeGetParams(node: Address, parameters: Out<KernelParameters>) {
        Ok(parameters.set(read(node, kernel_of)?)?)
    }

    fn cudaGraphKernelNodeSetParams(node: Address, parameters: In<KernelParameters>) {
        Ok(change(node, parameters.get()?.work()?)?)
    }

    fn cudaGraphKernelNodeSetParams_v13(node: Address, parameters: In<KernelParameters>) {
        Ok(change(node, since_13(parameters.get()?.work())?)?)
    }

    fn cudaGraphExecKernelNodeSetParams_v13(instance: Address, node: Address, parameters: In<KernelParameters>) {
        Ok(exec::change(instance, decode_node(node)?, since_13(parameters.get()?.work())?)?)
    }

    fn cudaGraphExecKernelNodeSetParams(instance: Address, node: Address, parameters: In<KernelParameters>) {
        Ok(exec::change(instance, decode_node(node)?, parameters.get()?.work()?)?)
    }

    fn cudaGraphKernelNodeGetAttribute(node: Address, number: u32, value: Out<u8>) {
        Ok(get_attribute(node, number, value)?)
    }

    fn cudaGraphKernelNodeSetAttribute(node: Address, number: u32, value: In<[u32; 16]>) {
        Ok(set_attribute(node, number, value)?)
    }

    /// Since 11.8 the target comes first.
    fn cudaGraphKernelNodeCopyAttributes(to: Address, from: Address) {
        Ok(copy_attributes(from, to)?)
    }

    fn cudaGraphAddMemcpyNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: In<Parameters3>) {
        Ok(add(node, graph, after, count, copy_work(parameters.get()?)?)?)
    }

    fn cudaGraphAddMemcpyNode1D(node: Out<Address>, graph: Address, after: In<Address>, count: usize, to: Address, from: Address, bytes: usize, kind: u32) {
        Ok(add(node, graph, after, count, linear_work(to, from, bytes, kind)?)?)
    }

    fn cudaGraphAddMemcpyNodeToSymbol(node: Out<Address>, graph: Address, after: In<Address>, count: usize, symbol: Address, from: Address, bytes: usize, offset: usize, kind: u32) {
        let to = symbol_part(symbol, offset, bytes)?;
        Ok(add(node, graph, after, count, linear_work(to, from, bytes, kind)?)?)
    }

    fn cudaGraphAddMemcpyNodeFromSymbol(node: Out<Address>, graph: Address, after: In<Address>, count: usize, to: Address, symbol: Address, bytes: usize, offset: usize, kind: u32) {
        let from = symbol_part(symbol, offset, bytes)?;
        Ok(add(node, graph, after, count, linear_work(to, from, bytes, kind)?)?)
    }

    fn cudaGraphMemcpyNodeGetParams(node: Address, parameters: Out<Parameters3>) {
        Ok(parameters.set(read(node, copy_of)?)?)
    }

    fn cudaGraphMemcpyNodeSetParams(node: Address, parameters: In<Parameters3>) {
        Ok(change(node, copy_work(parameters.get()?)?)?)
    }

    fn cudaGraphMemcpyNodeSetParams1D(node: Address, to: Address, from: Address, bytes: usize, kind: u32) {
        Ok(change(node, linear_work(to, from, bytes, kind)?)?)
    }

    fn cudaGraphMemcpyNodeSetParamsToSymbol(node: Address, symbol: Address, from: Address, bytes: usize, offset: usize, kind: u32) {
        let to = symbol_part(symbol, offset, bytes)?;
        Ok(change(node, linear_work(to, from, bytes, kind)?)?)
    }

    fn cudaGraphMemcpyNodeSetParamsFromSymbol(node: Address, to: Address, symbol: Address, bytes: usize, offset: usize, kind: u32) {
        let from = symbol_part(symbol, offset, bytes)?;
        Ok(change(node, linear_work(to, from, bytes, kind)?)?)
    }

    fn cudaGraphExecMemcpyNodeSetParams(instance: Address, node: Address, parameters: In<Parameters3>) {
        Ok(exec::change(instance, decode_node(node)?, copy_work(parameters.get()?)?)?)
    }

    fn cudaGraphExecMemcpyNodeSetParams1D(instance: Address, node: Address, to: Address, from: Address, bytes: usize, kind: u32) {
        Ok(exec::change(instance, decode_node(node)?, linear_work(to, from, bytes, kind)?)?)
    }

    fn cudaGraphExecMemcpyNodeSetParamsToSymbol(instance: Address, node: Address, symbol: Address, from: Address, bytes: usize, offset: usize, kind: u32) {
        let to = symbol_part(symbol, offset, bytes)?;
        Ok(exec::change(instance, decode_node(node)?, linear_work(to, from, bytes, kind)?)?)
    }

    fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(instance: Address, node: Address, to: Address, symbol: Address, bytes: usize, offset: usize, kind: u32) {
        let from = symbol_part(symbol, offset, bytes)?;
        Ok(exec::change(instance, decode_node(node)?, linear_work(to, from, bytes, kind)?)?)
    }

    fn cudaGraphAddMemsetNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: In<FillNode>) {
        Ok(add(node, graph, after, count, fill_work(parameters.get()?)?)?)
    }

    fn cudaGraphMemsetNodeGetParams(node: Address, parameters: Out<FillNode>) {
        Ok(parameters.set(read(node, fill_of)?)?)
    }

    fn cudaGraphMemsetNodeSetParams(node: Address, parameters: In<FillNode>) {
        Ok(change(node, fill_work(parameters.get()?)?)?)
    }

    fn cudaGraphExecMemsetNodeSetParams(instance: Address, node: Address, parameters: In<FillNode>) {
        Ok(exec::change(instance, decode_node(node)?, fill_work(parameters.get()?)?)?)
    }

    fn cudaGraphAddHostNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: In<HostNode>) {
        Ok(add(node, graph, after, count, host_work(parameters.get()?)?)?)
    }

    fn cudaGraphHostNodeGetParams(node: Address, parameters: Out<HostNode>) {
        Ok(parameters.set(read(node, host_of)?)?)
    }

    fn cudaGraphHostNodeSetParams(node: Address, parameters: In<HostNode>) {
        Ok(change(node, host_work(parameters.get()?)?)?)
    }

    fn cudaGraphExecHostNodeSetParams(instance: Address, node: Address, parameters: In<HostNode>) {
        Ok(exec::change(instance, decode_node(node)?, host_work(parameters.get()?)?)?)
    }

    fn cudaGraphAddChildGraphNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, child: Address) {
        Ok(add(node, graph, after, count, child_work(child)?)?)
    }

    fn cudaGraphExecChildGraphNodeSetParams(instance: Address, node: Address, child: Address) {
        Ok(exec::change_child(instance, decode_node(node)?, decode_graph(child)?)?)
    }

    fn cudaGraphAddEmptyNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize) {
        Ok(add(node, graph, after, count, NodeWork::Empty)?)
    }

    fn cudaGraphAddEventRecordNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, event: Address) {
        Ok(add(node, graph, after, count, NodeWork::Record(event))?)
    }

    fn cudaGraphEventRecordNodeGetEvent(node: Address, event: Out<Address>) {
        Ok(event.set(read(node, recorded_by)?)?)
    }

    fn cudaGraphEventRecordNodeSetEvent(node: Address, event: Address) {
        Ok(change(node, NodeWork::Record(event))?)
    }

    fn cudaGraphExecEventRecordNodeSetEvent(instance: Address, node: Address, event: Address) {
        Ok(exec::change(instance, decode_node(node)?, NodeWork::Record(event))?)
    }

    fn cudaGraphAddEventWaitNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, event: Address) {
        Ok(add(node, graph, after, count, NodeWork::Wait(event))?)
    }

    fn cudaGraphEventWaitNodeGetEvent(node: Address, event: Out<Address>) {
        Ok(event.set(read(node, waited_for_by)?)?)
    }

    fn cudaGraphEventWaitNodeSetEvent(node: Address, event: Address) {
        Ok(change(node, NodeWork::Wait(event))?)
    }

    fn cudaGraphExecEventWaitNodeSetEvent(instance: Address, node: Address, event: Address) {
        Ok(exec::change(instance, decode_node(node)?, NodeWork::Wait(event))?)
    }

    fn cudaGraphAddMemAllocNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: Out<AllocationParameters>) {
        Ok(add_allocation(node, graph, after, count, parameters, current_for_runtime()?)?)
    }

    fn cudaGraphMemAllocNodeGetParams(node: Address, parameters: Out<AllocationParameters>) {
        Ok(parameters.set(allocation(node)?)?)
    }

    fn cudaGraphAddMemFreeNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, address: Address) {
        Ok(add(node, graph, after, count, NodeWork::Free(address))?)
    }

    fn cudaGraphMemFreeNodeGetParams(node: Address, address: Out<Address>) {
        Ok(address.set(read(node, freed_by)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<KernelParameters>(), 56);
        assert_eq!(size_of::<FillNode>(), 40);
        assert_eq!(size_of::<HostNode>(), 16);
        assert_eq!(size_of::<AllocationParameters>(), 120);
    }
}
