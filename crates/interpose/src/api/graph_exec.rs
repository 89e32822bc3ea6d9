//! Graphs that are instantiated: launching and changing them.

use crate::boundary::{driver, runtime};
use crate::context::{current, current_for_runtime};
use crate::graph::exec;
use crate::graph::model::{decode_graph, decode_node, node_handle};
use crate::options;
use crate::streams::target;
use crate::types::{Address, Out};
use lockstep_protocol::CuResult;
use lockstep_protocol::options::Group;

/// `cudaGraphInstantiateFlagUpload`.
const UPLOAD: u64 = 2;

fn instantiate(instance: Out<Address>, graph: Address, flags: u64) -> Result<(), CuResult> {
    instance.check()?;
    let bits = u32::try_from(flags).map_err(|_| CuResult::INVALID_VALUE)?;
    options::accept_flags(Group::GraphFlag, bits)?;
    instance.set(exec::instantiate(decode_graph(graph)?, flags)?)
}

/// `cudaGraphInstantiateParams`, `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Parameters {
    flags: u64,
    stream: Address,
    error_node: Address,
    result: u32,
}

fn instantiate_with(
    instance: Out<Address>,
    graph: Address,
    parameters: Out<Parameters>,
    upload: impl FnOnce(Address) -> Result<lockstep_protocol::ContextHandle, CuResult>,
) -> Result<(), CuResult> {
    let mut said = parameters.current()?;
    said.error_node = 0;
    let outcome = instantiate(instance, graph, said.flags);
    said.result = match outcome {
        Ok(()) => 0,
        Err(CuResult::INVALID_VALUE) => 2,
        Err(CuResult::NOT_SUPPORTED) => 3,
        Err(_) => 1,
    };
    parameters.set(said)?;
    outcome?;
    if said.flags & UPLOAD != 0 {
        exec::upload(instance.current()?, upload(said.stream)?)?;
    }
    Ok(())
}

/// `cudaGraphExecUpdateResultInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UpdateResult {
    result: i32,
    error_node: Address,
    error_from: Address,
}

fn update(instance: Address, graph: Address) -> Result<UpdateResult, CuResult> {
    let name = |node: u64| if node == 0 { 0 } else { node_handle(node) };
    Ok(match exec::update(instance, decode_graph(graph)?)? {
        Ok(()) => UpdateResult {
            result: 0,
            error_node: 0,
            error_from: 0,
        },
        Err((result, node, from)) => UpdateResult {
            result,
            error_node: name(node),
            error_from: name(from),
        },
    })
}

fn update_code(result: i32) -> Result<(), CuResult> {
    match result {
        0 => Ok(()),
        _ => Err(CuResult::GRAPH_EXEC_UPDATE_FAILURE),
    }
}

fn update_with(
    instance: Address,
    graph: Address,
    answer: Out<UpdateResult>,
) -> Result<(), CuResult> {
    let outcome = update(instance, graph)?;
    answer.set_if_wanted(outcome);
    update_code(outcome.result)
}

fn update_first(
    instance: Address,
    graph: Address,
    node: Out<Address>,
    result: Out<i32>,
) -> Result<(), CuResult> {
    let outcome = update(instance, graph)?;
    node.set_if_wanted(outcome.error_node);
    result.set_if_wanted(outcome.result);
    update_code(outcome.result)
}

runtime! {
    fn cudaGraphInstantiate(instance: Out<Address>, graph: Address, flags: u64) {
        Ok(instantiate(instance, graph, flags)?)
    }

    /// Up to 11 it had places for a node and a log.
    fn cudaGraphInstantiate_v11(instance: Out<Address>, graph: Address, node: Out<Address>, log: Out<u8>, length: usize) {
        node.set_if_wanted(0);
        if !log.pointer().is_null() && length > 0 {
            log.set_text("", length)?;
        }
        Ok(instantiate(instance, graph, 0)?)
    }

    fn cudaGraphInstantiateWithFlags(instance: Out<Address>, graph: Address, flags: u64) {
        Ok(instantiate(instance, graph, flags)?)
    }

    fn cudaGraphInstantiateWithParams | cudaGraphInstantiateWithParams_ptsz [defaults] (instance: Out<Address>, graph: Address, parameters: Out<Parameters>) {
        Ok(instantiate_with(instance, graph, parameters, |stream| {
            Ok(target(stream, defaults, current_for_runtime)?.context)
        })?)
    }

    fn cudaGraphExecDestroy(instance: Address) {
        Ok(exec::destroy(instance)?)
    }

    fn cudaGraphExecGetFlags(instance: Address, flags: Out<u64>) {
        Ok(flags.set(exec::flags(instance)?)?)
    }

    fn cudaGraphExecGetId(instance: Address, answer: Out<u32>) {
        Ok(answer.set(exec::identity(instance)?)?)
    }

    fn cudaGraphUpload | cudaGraphUpload_ptsz [defaults] (instance: Address, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(exec::upload(instance, target.context)?)
    }

    fn cudaGraphLaunch | cudaGraphLaunch_ptsz [defaults] (instance: Address, stream: Address) {
        Ok(exec::launch(instance, target(stream, defaults, current_for_runtime)?)?)
    }

    fn cudaGraphExecUpdate(instance: Address, graph: Address, answer: Out<UpdateResult>) {
        Ok(update_with(instance, graph, answer)?)
    }

    /// Up to 11 it answered in two places.
    fn cudaGraphExecUpdate_v11(instance: Address, graph: Address, node: Out<Address>, result: Out<i32>) {
        Ok(update_first(instance, graph, node, result)?)
    }

    fn cudaGraphNodeSetEnabled(instance: Address, node: Address, enabled: u32) {
        Ok(exec::set_enabled(instance, decode_node(node)?, enabled != 0)?)
    }

    fn cudaGraphNodeGetEnabled(instance: Address, node: Address, enabled: Out<u32>) {
        Ok(enabled.set(u32::from(exec::is_enabled(instance, decode_node(node)?)?))?)
    }
}

driver! {
    fn cuGraphInstantiate(instance: Out<Address>, graph: Address, node: Out<Address>, log: Out<u8>, length: usize) {
        node.set_if_wanted(0);
        if !log.pointer().is_null() && length > 0 {
            log.set_text("", length)?;
        }
        instantiate(instance, graph, 0)
    }

    fn cuGraphInstantiate_v2(instance: Out<Address>, graph: Address, node: Out<Address>, log: Out<u8>, length: usize) {
        node.set_if_wanted(0);
        if !log.pointer().is_null() && length > 0 {
            log.set_text("", length)?;
        }
        instantiate(instance, graph, 0)
    }

    fn cuGraphInstantiateWithFlags(instance: Out<Address>, graph: Address, flags: u64) {
        instantiate(instance, graph, flags)
    }

    fn cuGraphInstantiateWithParams | cuGraphInstantiateWithParams_ptsz [defaults] (instance: Out<Address>, graph: Address, parameters: Out<Parameters>) {
        instantiate_with(instance, graph, parameters, |stream| {
            Ok(target(stream, defaults, current)?.context)
        })
    }

    fn cuGraphExecDestroy(instance: Address) {
        exec::destroy(instance)
    }

    fn cuGraphExecGetFlags(instance: Address, flags: Out<u64>) {
        flags.set(exec::flags(instance)?)
    }

    fn cuGraphExecGetId(instance: Address, answer: Out<u32>) {
        answer.set(exec::identity(instance)?)
    }

    fn cuGraphUpload | cuGraphUpload_ptsz [defaults] (instance: Address, stream: Address) {
        let target = target(stream, defaults, current)?;
        exec::upload(instance, target.context)
    }

    fn cuGraphLaunch | cuGraphLaunch_ptsz [defaults] (instance: Address, stream: Address) {
        exec::launch(instance, target(stream, defaults, current)?)
    }

    fn cuGraphExecUpdate(instance: Address, graph: Address, node: Out<Address>, result: Out<i32>) {
        update_first(instance, graph, node, result)
    }

    fn cuGraphExecUpdate_v2(instance: Address, graph: Address, answer: Out<UpdateResult>) {
        update_with(instance, graph, answer)
    }

    fn cuGraphNodeSetEnabled(instance: Address, node: Address, enabled: u32) {
        exec::set_enabled(instance, decode_node(node)?, enabled != 0)
    }

    fn cuGraphNodeGetEnabled(instance: Address, node: Address, enabled: Out<u32>) {
        enabled.set(u32::from(exec::is_enabled(instance, decode_node(node)?)?))
    }
}
