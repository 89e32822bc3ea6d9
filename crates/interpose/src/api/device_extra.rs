//! Questions about devices that few programs ask.

use super::array_format::Format;
use super::context::{accept_context_flags, from_handle};
use super::event;
use crate::boundary::{RuntimeError, driver, runtime};
use crate::context::{check_initialized, current, current_for_runtime, destroy};
use crate::process::device;
use crate::streams::Target;
use crate::types::{Address, In, Out};
use lockstep_protocol::{ContextHandle, CuResult, StreamName};

/// Bytes of a texture over linear memory, whatever its elements are.
const TEXTURE_BYTES: usize = 1 << 32;

/// Writes of other devices are always visible: there is nothing to flush.
fn flush(target: u32, scope: u32) -> Result<(), CuResult> {
    match (target, scope) {
        (0, 100 | 200) => Ok(()),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

/// All work of a context is ordered by its legacy stream.
fn whole(context: ContextHandle) -> Target {
    Target {
        context,
        stream: StreamName::Legacy,
    }
}

runtime! {
    fn cudaDeviceFlushGPUDirectRDMAWrites(target: u32, scope: u32) {
        current_for_runtime()?;
        Ok(flush(target, scope)?)
    }

    fn cudaDeviceGetTexture1DLinearMaxWidth(width: Out<usize>, format: In<Format>, number: i32) {
        device(number)?;
        let element = format.get()?.bytes().map_err(|_| RuntimeError::INVALID_VALUE)?;
        Ok(width.set(TEXTURE_BYTES / element)?)
    }
}

driver! {
    fn cuFlushGPUDirectRDMAWrites(target: u32, scope: u32) {
        current()?;
        flush(target, scope)
    }

    fn cuDeviceGetTexture1DLinearMaxWidth(width: Out<usize>, format: u32, channels: u32, number: i32) {
        check_initialized()?;
        device(number)?;
        let element = Format::of_driver(format, channels)?.bytes()?;
        width.set(TEXTURE_BYTES / element)
    }

    /// Contexts that own a part of the SMs are for a server that shares a GPU.
    fn cuDeviceGetExecAffinitySupport(answer: Out<i32>, kind: u32, number: i32) {
        const SM_COUNT: u32 = 0;
        check_initialized()?;
        device(number)?;
        if kind != SM_COUNT {
            return Err(CuResult::INVALID_VALUE);
        }
        answer.set(0)
    }

    fn cuCtxSetFlags(flags: u32) {
        current()?;
        accept_context_flags(flags)
    }

    /// Gives back what `cuCtxAttach` took; the creator's own hold ends the context.
    fn cuCtxDetach(handle: Address) {
        destroy(from_handle(handle)?)
    }

    fn cuCtxRecordEvent(handle: Address, event: Address) {
        let context = if handle == 0 { current()? } else { from_handle(handle)? };
        event::record(whole(context), event)
    }

    fn cuCtxWaitEvent(handle: Address, event: Address) {
        let context = if handle == 0 { current()? } else { from_handle(handle)? };
        super::stream::wait_event(whole(context), event, 0)
    }
}
