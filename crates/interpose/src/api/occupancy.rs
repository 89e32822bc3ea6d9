//! Occupancy: how many blocks fit. The simulator, which knows its SMs, answers.

use super::launch::{DriverLaunchConfiguration, LaunchConfiguration, describe, find_for_runtime};
use crate::boundary::{driver, runtime};
use crate::call::ask;
use crate::context::{current, current_for_runtime, find};
use crate::options;
use crate::process::{lock, process};
use crate::registry::{self, Function};
use crate::types::{Address, In, Out, SharedMemoryOfBlock};
use lockstep_protocol::options::Group;
use lockstep_protocol::{ContextHandle, CuResult, Request, attribute};

fn blocks(function: &Function, threads: i32, shared: usize, flags: u32) -> Result<i32, CuResult> {
    options::accept_flags(Group::OccupancyFlag, flags)?;
    let request = Request::OccupancyBlocks {
        function: lock(&function.info).handle,
        block_threads: u32::try_from(threads).map_err(|_| CuResult::INVALID_VALUE)?,
        dynamic_shared: shared as u64,
        flags,
    };
    if threads == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    Ok(ask!(Value, &request) as i32)
}

fn clusters(
    context: ContextHandle,
    function: &Function,
    configuration: LaunchConfiguration,
) -> Result<i32, CuResult> {
    let launch = describe(context, function, configuration)?;
    Ok(ask!(Value, &Request::OccupancyClusters { launch }) as i32)
}

/// Blocks of the largest cluster that a kernel may be launched with: what every GPU with clusters can do, or
/// twice that with leave.
fn largest_cluster(function: &Function) -> i32 {
    match lock(&function.info).attributes.non_portable_cluster_allowed {
        0 => 8,
        _ => 16,
    }
}

fn device_attribute(context: ContextHandle, number: u32) -> Result<i32, CuResult> {
    let device = find(context)?.device;
    Ok(process()?.devices[device].description.attribute(number))
}

/// Shared memory that each of `blocks` blocks on an SM can have beside its static one.
fn available_shared(
    context: ContextHandle,
    function: &Function,
    blocks: i32,
) -> Result<usize, CuResult> {
    if blocks <= 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    let of_processor = device_attribute(context, attribute::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?;
    // A kernel that prefers L1 leaves the SM its least shared memory.
    const PREFER_L1: u32 = 2;
    const LEAST: i32 = 8 << 10;
    let of_processor = match *lock(&function.cache_preference) {
        PREFER_L1 => LEAST,
        _ => of_processor,
    };
    let attributes = lock(&function.info).attributes.clone();
    const UNIT: i32 = 128;
    let share = of_processor / blocks / UNIT * UNIT - attributes.static_shared;
    Ok(share.clamp(0, attributes.maximum_dynamic_shared) as usize)
}

/// Tries every block size of whole warps and keeps the one with most resident threads, the
/// larger on a tie.
fn potential_block_size(
    context: ContextHandle,
    function: &Function,
    shared_of_block: SharedMemoryOfBlock,
    shared: usize,
    limit: i32,
    flags: u32,
) -> Result<(i32, i32), CuResult> {
    let warp = device_attribute(context, attribute::WARP_SIZE)?.max(1);
    let processors = device_attribute(context, attribute::MULTIPROCESSOR_COUNT)?;
    let of_device = device_attribute(context, attribute::MAX_THREADS_PER_BLOCK)?;
    let of_function = lock(&function.info).attributes.maximum_threads;
    let mut largest = of_device.min(of_function);
    if limit > 0 {
        largest = largest.min(limit);
    }
    let of_processor = device_attribute(context, attribute::MAX_THREADS_PER_MULTIPROCESSOR)?;
    let (mut best_size, mut best_blocks, mut best_threads) = (0, 0, 0);
    let mut size = (largest + warp - 1) / warp * warp;
    while size > 0 {
        let threads = size.min(largest);
        let dynamic = match shared_of_block {
            // SAFETY: the program passed this function to be asked for block sizes.
            Some(ask) => unsafe { ask(threads) },
            None => shared,
        };
        let blocks = blocks(function, threads, dynamic, flags)?;
        if blocks * threads > best_threads {
            (best_size, best_blocks, best_threads) = (threads, blocks, blocks * threads);
        }
        if best_threads >= of_processor {
            break;
        }
        size -= warp;
    }
    Ok((best_blocks * processors, best_size))
}

runtime! {
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(count: Out<i32>, function: Address, threads: i32, shared: usize) {
        count.check()?;
        let function = find_for_runtime(function, current_for_runtime()?)?;
        Ok(count.set(blocks(&function, threads, shared, 0)?)?)
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count: Out<i32>, function: Address, threads: i32, shared: usize, flags: u32) {
        count.check()?;
        let function = find_for_runtime(function, current_for_runtime()?)?;
        Ok(count.set(blocks(&function, threads, shared, flags)?)?)
    }

    fn cudaOccupancyAvailableDynamicSMemPerBlock(bytes: Out<usize>, function: Address, blocks: i32, threads: i32) {
        let _ = threads;
        let context = current_for_runtime()?;
        let function = find_for_runtime(function, context)?;
        Ok(bytes.set(available_shared(context, &function, blocks)?)?)
    }

    fn cudaOccupancyMaxPotentialClusterSize(size: Out<i32>, function: Address, configuration: In<LaunchConfiguration>) {
        size.check()?;
        let function = find_for_runtime(function, current_for_runtime()?)?;
        configuration.get()?;
        Ok(size.set(largest_cluster(&function))?)
    }

    fn cudaOccupancyMaxActiveClusters(count: Out<i32>, function: Address, configuration: In<LaunchConfiguration>) {
        count.check()?;
        let context = current_for_runtime()?;
        let function = find_for_runtime(function, context)?;
        Ok(count.set(clusters(context, &function, configuration.get()?)?)?)
    }
}

driver! {
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(count: Out<i32>, function: Address, threads: i32, shared: usize) {
        count.check()?;
        count.set(blocks(&*registry::function(function, current()?)?, threads, shared, 0)?)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count: Out<i32>, function: Address, threads: i32, shared: usize, flags: u32) {
        count.check()?;
        count.set(blocks(&*registry::function(function, current()?)?, threads, shared, flags)?)
    }

    fn cuOccupancyMaxPotentialBlockSize(grid: Out<i32>, block: Out<i32>, function: Address, shared_of_block: SharedMemoryOfBlock, shared: usize, limit: i32) {
        let context = current()?;
        let function = registry::function(function, context)?;
        let best = potential_block_size(context, &function, shared_of_block, shared, limit, 0)?;
        grid.set(best.0)?;
        block.set(best.1)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags(grid: Out<i32>, block: Out<i32>, function: Address, shared_of_block: SharedMemoryOfBlock, shared: usize, limit: i32, flags: u32) {
        let context = current()?;
        let function = registry::function(function, context)?;
        let best = potential_block_size(context, &function, shared_of_block, shared, limit, flags)?;
        grid.set(best.0)?;
        block.set(best.1)
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock(bytes: Out<usize>, function: Address, blocks: i32, threads: i32) {
        let _ = threads;
        let context = current()?;
        let function = registry::function(function, context)?;
        bytes.set(available_shared(context, &function, blocks)?)
    }

    fn cuOccupancyMaxPotentialClusterSize(size: Out<i32>, function: Address, configuration: In<DriverLaunchConfiguration>) {
        size.check()?;
        let function = registry::function(function, current()?)?;
        configuration.get()?;
        size.set(largest_cluster(&function))
    }

    fn cuOccupancyMaxActiveClusters(count: Out<i32>, function: Address, configuration: In<DriverLaunchConfiguration>) {
        count.check()?;
        let context = current()?;
        let function = registry::function(function, context)?;
        count.set(clusters(context, &function, configuration.get()?.into())?)
    }
}
