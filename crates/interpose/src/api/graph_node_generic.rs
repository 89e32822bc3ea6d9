//! Nodes of graphs whose kind is said in their parameters.

use super::copy::Parameters3;
use super::driver_copy::Cube;
use super::graph::{EdgeData, check_edges};
use super::graph_node::{
    AllocationParameters, KernelParameters, add, add_allocation, allocation, change, child_work,
    copy_of, copy_work, fill_of, fill_work, freed_by, host_of, host_work, kernel_of, read,
    recorded_by, waited_for_by,
};
use super::graph_node_driver::{KernelParameters2, cube_work, kernel_parameters_2, kernel_work_2};
use super::launch::Extras;
use crate::boundary::{RuntimeError, driver, runtime};
use crate::call::note;
use crate::context::{current, current_for_runtime};
use crate::graph::exec;
use crate::graph::model::{
    FillNode, HostNode, NodeWork, decode_graph, decode_node, graph_handle, graphs,
};
use crate::types::{Address, In, Out};
use lockstep_protocol::{ContextHandle, CuResult, UnsupportedManner};

/// `cudaGraphNodeParams`, `CUgraphNodeParams`: a kind, and room for the parameters of each.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Parameters {
    kind: u32,
    reserved: [u32; 3],
    contents: [u64; 29],
    end: u64,
}

impl Parameters {
    /// The parameters as those of one kind. Each kind is plain data and fits the room.
    fn part<T: Copy>(&self, offset: usize) -> T {
        assert!(offset * 8 + size_of::<T>() <= size_of_val(&self.contents));
        // SAFETY: the room is large enough, as checked above, and any bits are valid for the
        // kinds of parameters, which are numbers and addresses of the program's.
        unsafe {
            self.contents[offset..]
                .as_ptr()
                .cast::<T>()
                .read_unaligned()
        }
    }

    fn set_part<T: Copy>(&mut self, offset: usize, value: T) {
        assert!(offset * 8 + size_of::<T>() <= size_of_val(&self.contents));
        let place = self.contents[offset..].as_mut_ptr().cast::<T>();
        // SAFETY: the room is large enough, as checked above.
        unsafe { place.write_unaligned(value) };
    }
}

/// Words before the copy itself in the parameters of a copy: flags and a context.
const COPY_OFFSET: usize = 2;

/// Whose words parameters are in.
#[derive(Clone, Copy, PartialEq)]
enum Api {
    Runtime,
    Driver,
}

fn work(parameters: &Parameters, api: Api) -> Result<NodeWork, RuntimeError> {
    Ok(match (parameters.kind, api) {
        (0, Api::Runtime) => parameters
            .part::<KernelParameters>(0)
            .work_with(Extras::default())?,
        (0, Api::Driver) => kernel_work_2(parameters.part::<KernelParameters2>(0))?,
        (1, Api::Runtime) => copy_work(parameters.part::<Parameters3>(COPY_OFFSET))?,
        (1, Api::Driver) => cube_work(parameters.part::<Cube>(COPY_OFFSET))?,
        (2, _) => fill_work(parameters.part::<FillNode>(0))?,
        (3, _) => host_work(parameters.part::<HostNode>(0))?,
        (4, _) => child_work(parameters.part::<Address>(0))?,
        (5, _) => NodeWork::Empty,
        (6, _) => NodeWork::Wait(parameters.part::<Address>(0)),
        (7, _) => NodeWork::Record(parameters.part::<Address>(0)),
        (11, _) => NodeWork::Free(parameters.part::<Address>(0)),
        (kind, _) => {
            note(
                &format!("graph node of kind {kind}"),
                UnsupportedManner::Option,
            );
            return Err(CuResult::NOT_SUPPORTED.into());
        }
    })
}

fn add_any(
    node: Out<Address>,
    graph: Address,
    after: In<Address>,
    count: usize,
    parameters: Out<Parameters>,
    api: Api,
    context: ContextHandle,
) -> Result<(), RuntimeError> {
    const ALLOCATE: u32 = 10;
    let mut wanted = parameters.current()?;
    if wanted.kind == ALLOCATE {
        let mut inner: AllocationParameters = wanted.part(0);
        add_allocation(
            node,
            graph,
            after,
            count,
            Out::at(&raw mut inner as Address),
            context,
        )?;
        wanted.set_part(0, inner);
        return Ok(parameters.set(wanted)?);
    }
    let work = work(&wanted, api)?;
    let child = match work {
        NodeWork::Child(graph) => Some(graph),
        _ => None,
    };
    add(node, graph, after, count, work)?;
    if let Some(child) = child {
        wanted.set_part(0, graph_handle(child));
        parameters.set(wanted)?;
    }
    Ok(())
}

fn get(node: Address, api: Api) -> Result<Parameters, CuResult> {
    let mut answer = Parameters {
        kind: graphs().node(decode_node(node)?)?.work.kind(),
        reserved: [0; 3],
        contents: [0; 29],
        end: 0,
    };
    match (answer.kind, api) {
        (0, Api::Runtime) => answer.set_part(0, read(node, kernel_of)?),
        (0, Api::Driver) => answer.set_part(0, kernel_parameters_2(node)?),
        (1, Api::Runtime) => answer.set_part(COPY_OFFSET, read(node, copy_of)?),
        (1, Api::Driver) => answer.set_part(COPY_OFFSET, Cube::of(&read(node, copy_of)?)),
        (2, _) => answer.set_part(0, read(node, fill_of)?),
        (3, _) => answer.set_part(0, read(node, host_of)?),
        (4, _) => answer.set_part(
            0,
            read(node, |work| match work {
                NodeWork::Child(graph) => Some(graph_handle(*graph)),
                _ => None,
            })?,
        ),
        (6, _) => answer.set_part(0, read(node, waited_for_by)?),
        (7, _) => answer.set_part(0, read(node, recorded_by)?),
        (10, _) => answer.set_part(0, allocation(node)?),
        (11, _) => answer.set_part(0, read(node, freed_by)?),
        _ => {}
    }
    Ok(answer)
}

fn change_exec(
    instance: Address,
    node: Address,
    parameters: &Parameters,
    api: Api,
) -> Result<(), RuntimeError> {
    const CHILD: u32 = 4;
    if parameters.kind == CHILD {
        let graph = decode_graph(parameters.part(0))?;
        return Ok(exec::change_child(instance, decode_node(node)?, graph)?);
    }
    let work = work(parameters, api)?;
    Ok(exec::change(instance, decode_node(node)?, work)?)
}

runtime! {
    fn cudaGraphAddNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: Out<Parameters>) {
        add_any(node, graph, after, count, parameters, Api::Runtime, current_for_runtime()?)
    }

    fn cudaGraphAddNode_v2(node: Out<Address>, graph: Address, after: In<Address>, data: In<EdgeData>, count: usize, parameters: Out<Parameters>) {
        check_edges(data, count)?;
        add_any(node, graph, after, count, parameters, Api::Runtime, current_for_runtime()?)
    }

    fn cudaGraphNodeSetParams(node: Address, parameters: In<Parameters>) {
        Ok(change(node, work(&parameters.get()?, Api::Runtime)?)?)
    }

    fn cudaGraphNodeGetParams(node: Address, parameters: Out<Parameters>) {
        Ok(parameters.set(get(node, Api::Runtime)?)?)
    }

    fn cudaGraphExecNodeSetParams(instance: Address, node: Address, parameters: In<Parameters>) {
        change_exec(instance, node, &parameters.get()?, Api::Runtime)
    }
}

/// The driver has no codes of its own here.
fn driver_code(result: Result<(), RuntimeError>) -> Result<(), CuResult> {
    result.map_err(|error| CuResult(error.0 as u32))
}

driver! {
    fn cuGraphAddNode(node: Out<Address>, graph: Address, after: In<Address>, count: usize, parameters: Out<Parameters>) {
        driver_code(add_any(node, graph, after, count, parameters, Api::Driver, current()?))
    }

    fn cuGraphAddNode_v2(node: Out<Address>, graph: Address, after: In<Address>, data: In<EdgeData>, count: usize, parameters: Out<Parameters>) {
        check_edges(data, count)?;
        driver_code(add_any(node, graph, after, count, parameters, Api::Driver, current()?))
    }

    fn cuGraphNodeSetParams(node: Address, parameters: In<Parameters>) {
        let work = work(&parameters.get()?, Api::Driver).map_err(|error| CuResult(error.0 as u32))?;
        change(node, work)
    }

    fn cuGraphNodeGetParams(node: Address, parameters: Out<Parameters>) {
        parameters.set(get(node, Api::Driver)?)
    }

    fn cuGraphExecNodeSetParams(instance: Address, node: Address, parameters: In<Parameters>) {
        driver_code(change_exec(instance, node, &parameters.get()?, Api::Driver))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_size_of_the_header() {
        assert_eq!(size_of::<Parameters>(), 256);
    }
}
