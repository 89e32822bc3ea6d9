//! Nodes of graphs in the driver's words.

use super::driver_copy::Cube;
use super::graph_node::{
    AllocationParameters, KernelParameters, add, add_allocation, allocation, change, child_work,
    copy_attributes, copy_of, fill_of, fill_work, freed_by, get_attribute, host_of, host_work,
    kernel_of, read, recorded_by, set_attribute, waited_for_by,
};
use super::launch::{Arguments, Extras, kernel_node};
use super::value::{Operation, operations, restored};
use crate::boundary::driver;
use crate::context::current;
use crate::graph::exec;
use crate::graph::model::{CopyNode, FillNode, HostNode, NodeWork, decode_graph, decode_node};
use crate::registry;
use crate::types::{Address, In, Out};
use lockstep_protocol::CuResult;

/// `CUDA_KERNEL_NODE_PARAMS` since 12.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelParameters2 {
    first: KernelParameters,
    kernel: Address,
    context: Address,
}

/// The node that parameters describe.
fn kernel_work(parameters: KernelParameters) -> Result<NodeWork, CuResult> {
    let function = registry::function(parameters.function, current()?)?;
    let shape = (
        parameters.grid,
        parameters.block,
        parameters.shared as usize,
    );
    let arguments = Arguments::new(parameters.arguments, parameters.extra);
    let extras = Extras::default();
    let node = kernel_node(parameters.function, &function, shape, arguments, extras)?;
    Ok(NodeWork::Kernel(node))
}

/// The newer parameters name the kernel by either handle.
pub fn kernel_work_2(parameters: KernelParameters2) -> Result<NodeWork, CuResult> {
    let mut first = parameters.first;
    if first.function == 0 {
        first.function = parameters.kernel;
    }
    kernel_work(first)
}

/// What a kernel node was made with, in the newer words.
pub fn kernel_parameters_2(node: Address) -> Result<KernelParameters2, CuResult> {
    Ok(KernelParameters2 {
        first: read(node, kernel_of)?,
        kernel: 0,
        context: 0,
    })
}

/// The copy that parameters describe.
pub fn cube_work(cube: Cube) -> Result<NodeWork, CuResult> {
    let (to, from, extent) = cube.resolve()?;
    if to.address == 0 || from.address == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    Ok(NodeWork::Copy(CopyNode {
        to,
        from,
        extent,
        parameters: super::copy::describe(to, from, extent),
    }))
}

/// `CUDA_BATCH_MEM_OP_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BatchParameters {
    context: Address,
    count: u32,
    operations: In<Operation>,
    flags: u32,
}

fn batch_work(parameters: BatchParameters) -> Result<NodeWork, CuResult> {
    Ok(NodeWork::Values(operations(
        parameters.operations,
        parameters.count,
    )?))
}

driver! {
    fn cuGraphAddKernelNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: In<KernelParameters>) {
        add(node, graph, after, count, kernel_work(parameters.get()?)?)
    }

    fn cuGraphAddKernelNode_v2(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: In<KernelParameters2>) {
        add(node, graph, after, count, kernel_work_2(parameters.get()?)?)
    }

    fn cuGraphKernelNodeGetParams(node: Address, parameters: Out<KernelParameters>) {
        parameters.set(read(node, kernel_of)?)
    }

    fn cuGraphKernelNodeGetParams_v2(node: Address, parameters: Out<KernelParameters2>) {
        parameters.set(kernel_parameters_2(node)?)
    }

    fn cuGraphKernelNodeSetParams(node: Address, parameters: In<KernelParameters>) {
        change(node, kernel_work(parameters.get()?)?)
    }

    fn cuGraphKernelNodeSetParams_v2(node: Address, parameters: In<KernelParameters2>) {
        change(node, kernel_work_2(parameters.get()?)?)
    }

    fn cuGraphExecKernelNodeSetParams(instance: Address, node: Address, parameters: In<KernelParameters>) {
        exec::change(instance, decode_node(node)?, kernel_work(parameters.get()?)?)
    }

    fn cuGraphExecKernelNodeSetParams_v2(instance: Address, node: Address, parameters: In<KernelParameters2>) {
        exec::change(instance, decode_node(node)?, kernel_work_2(parameters.get()?)?)
    }

    fn cuGraphKernelNodeGetAttribute(node: Address, number: u32, value: Out<u8>) {
        get_attribute(node, number, value)
    }

    fn cuGraphKernelNodeSetAttribute(node: Address, number: u32, value: In<[u32; 16]>) {
        set_attribute(node, number, value)
    }

    fn cuGraphKernelNodeCopyAttributes(to: Address, from: Address) {
        copy_attributes(from, to)
    }

    fn cuGraphAddMemcpyNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: In<Cube>, context: Address) {
        let _ = context; // Addresses say where memory is.
        add(node, graph, after, count, cube_work(parameters.get()?)?)
    }

    fn cuGraphMemcpyNodeGetParams(node: Address, parameters: Out<Cube>) {
        parameters.set(Cube::of(&read(node, copy_of)?))
    }

    fn cuGraphMemcpyNodeSetParams(node: Address, parameters: In<Cube>) {
        change(node, cube_work(parameters.get()?)?)
    }

    fn cuGraphExecMemcpyNodeSetParams(instance: Address, node: Address, parameters: In<Cube>, context: Address) {
        let _ = context;
        exec::change(instance, decode_node(node)?, cube_work(parameters.get()?)?)
    }

    fn cuGraphAddMemsetNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: In<FillNode>, context: Address) {
        let _ = context;
        add(node, graph, after, count, fill_work(parameters.get()?)?)
    }

    fn cuGraphMemsetNodeGetParams(node: Address, parameters: Out<FillNode>) {
        parameters.set(read(node, fill_of)?)
    }

    fn cuGraphMemsetNodeSetParams(node: Address, parameters: In<FillNode>) {
        change(node, fill_work(parameters.get()?)?)
    }

    fn cuGraphExecMemsetNodeSetParams(instance: Address, node: Address, parameters: In<FillNode>, context: Address) {
        let _ = context;
        exec::change(instance, decode_node(node)?, fill_work(parameters.get()?)?)
    }

    fn cuGraphAddHostNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: In<HostNode>) {
        add(node, graph, after, count, host_work(parameters.get()?)?)
    }

    fn cuGraphHostNodeGetParams(node: Address, parameters: Out<HostNode>) {
        parameters.set(read(node, host_of)?)
    }

    fn cuGraphHostNodeSetParams(node: Address, parameters: In<HostNode>) {
        change(node, host_work(parameters.get()?)?)
    }

    fn cuGraphExecHostNodeSetParams(instance: Address, node: Address, parameters: In<HostNode>) {
        exec::change(instance, decode_node(node)?, host_work(parameters.get()?)?)
    }

    fn cuGraphAddChildGraphNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, child: Address) {
        add(node, graph, after, count, child_work(child)?)
    }

    fn cuGraphExecChildGraphNodeSetParams(instance: Address, node: Address, child: Address) {
        exec::change_child(instance, decode_node(node)?, decode_graph(child)?)
    }

    fn cuGraphAddEmptyNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize) {
        add(node, graph, after, count, NodeWork::Empty)
    }

    fn cuGraphAddEventRecordNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, event: Address) {
        add(node, graph, after, count, NodeWork::Record(event))
    }

    fn cuGraphEventRecordNodeGetEvent(node: Address, event: Out<Address>) {
        event.set(read(node, recorded_by)?)
    }

    fn cuGraphEventRecordNodeSetEvent(node: Address, event: Address) {
        change(node, NodeWork::Record(event))
    }

    fn cuGraphExecEventRecordNodeSetEvent(instance: Address, node: Address, event: Address) {
        exec::change(instance, decode_node(node)?, NodeWork::Record(event))
    }

    fn cuGraphAddEventWaitNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, event: Address) {
        add(node, graph, after, count, NodeWork::Wait(event))
    }

    fn cuGraphEventWaitNodeGetEvent(node: Address, event: Out<Address>) {
        event.set(read(node, waited_for_by)?)
    }

    fn cuGraphEventWaitNodeSetEvent(node: Address, event: Address) {
        change(node, NodeWork::Wait(event))
    }

    fn cuGraphExecEventWaitNodeSetEvent(instance: Address, node: Address, event: Address) {
        exec::change(instance, decode_node(node)?, NodeWork::Wait(event))
    }

    fn cuGraphAddMemAllocNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: Out<AllocationParameters>) {
        add_allocation(node, graph, after, count, parameters, current()?)
    }

    fn cuGraphMemAllocNodeGetParams(node: Address, parameters: Out<AllocationParameters>) {
        parameters.set(allocation(node)?)
    }

    fn cuGraphAddMemFreeNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, address: Address) {
        add(node, graph, after, count, NodeWork::Free(address))
    }

    fn cuGraphMemFreeNodeGetParams(node: Address, address: Out<Address>) {
        address.set(read(node, freed_by)?)
    }

    fn cuGraphAddBatchMemOpNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: In<BatchParameters>) {
        add(node, graph, after, count, batch_work(parameters.get()?)?)
    }

    /// The operations stay at the place that is answered until the next such call.
    fn cuGraphBatchMemOpNodeGetParams(node: Address, parameters: Out<BatchParameters>) {
        let values = read(node, |work| match work {
            NodeWork::Values(values) => Some(values.clone()),
            _ => None,
        })?;
        let (operations, count) = restored(&values);
        parameters.set(BatchParameters { context: 0, count, operations, flags: 0 })
    }

    fn cuGraphBatchMemOpNodeSetParams(node: Address, parameters: In<BatchParameters>) {
        change(node, batch_work(parameters.get()?)?)
    }

    fn cuGraphExecBatchMemOpNodeSetParams(instance: Address, node: Address, parameters: In<BatchParameters>) {
        exec::change(instance, decode_node(node)?, batch_work(parameters.get()?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<KernelParameters2>(), 72);
        assert_eq!(size_of::<BatchParameters>(), 32);
    }
}
