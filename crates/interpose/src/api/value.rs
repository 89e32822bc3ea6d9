//! Waiting for values in memory, and writing them, in stream order.

use crate::boundary::driver;
use crate::call::done;
use crate::context::current;
use crate::fair_mutex::FairMutex;
use crate::graph::capture;
use crate::graph::model::NodeWork;
use crate::process::lock;
use crate::streams::{Target, target};
use crate::types::{Address, In};
use lockstep_protocol::{CuResult, Request, ValueAction, ValueWork};

/// `CUstreamBatchMemOpParams`: operation, address, value, flags.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Operation {
    kind: u32,
    padding: u32,
    address: u64,
    value: u64,
    flags: u32,
    rest: [u32; 5],
}

const WAIT_32: u32 = 1;
const WRITE_32: u32 = 2;
const FLUSH_REMOTE_WRITES: u32 = 3;
const WAIT_64: u32 = 4;
const WRITE_64: u32 = 5;
const BARRIER: u32 = 6;

fn wait_action(flags: u32) -> Result<ValueAction, CuResult> {
    // The flush flag is about writes of other devices, which are always there.
    match flags & !(1 << 30) {
        0 => Ok(ValueAction::WaitGreaterOrEqual),
        1 => Ok(ValueAction::WaitEqual),
        2 => Ok(ValueAction::WaitAnd),
        3 => Ok(ValueAction::WaitNor),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

fn work(address: u64, value: u64, bytes: u8, action: ValueAction) -> Result<ValueWork, CuResult> {
    if address == 0 || !address.is_multiple_of(u64::from(bytes)) {
        return Err(CuResult::INVALID_VALUE);
    }
    let value = if bytes == 4 {
        value & u64::from(u32::MAX)
    } else {
        value
    };
    Ok(ValueWork {
        address,
        value,
        bytes,
        action,
    })
}

/// What a batch does, in order.
pub fn operations(list: In<Operation>, count: u32) -> Result<Vec<ValueWork>, CuResult> {
    let mut all = Vec::new();
    for index in 0..count as usize {
        let Operation {
            kind,
            address,
            value,
            flags,
            ..
        } = list.at(index)?;
        all.push(match kind {
            WAIT_32 => work(address, value, 4, wait_action(flags)?)?,
            WAIT_64 => work(address, value, 8, wait_action(flags)?)?,
            WRITE_32 => work(address, value, 4, ValueAction::Write)?,
            WRITE_64 => work(address, value, 8, ValueAction::Write)?,
            // Operations of a batch come one after the other anyway.
            FLUSH_REMOTE_WRITES | BARRIER => continue,
            _ => return Err(CuResult::INVALID_VALUE),
        });
    }
    Ok(all)
}

/// A batch in the program's words, at a place that stays until the next call.
pub fn restored(values: &[ValueWork]) -> (In<Operation>, u32) {
    static LAST: FairMutex<Vec<Operation>> = FairMutex::new(Vec::new());
    let mut last = lock(&LAST);
    *last = values
        .iter()
        .map(|value| {
            let (kind, flags) = match value.action {
                ValueAction::Write => (WRITE_32, 0),
                ValueAction::WaitGreaterOrEqual => (WAIT_32, 0),
                ValueAction::WaitEqual => (WAIT_32, 1),
                ValueAction::WaitAnd => (WAIT_32, 2),
                ValueAction::WaitNor => (WAIT_32, 3),
            };
            Operation {
                kind: if value.bytes == 8 { kind + 3 } else { kind },
                padding: 0,
                address: value.address,
                value: value.value,
                flags,
                rest: [0; 5],
            }
        })
        .collect();
    (In(last.as_ptr()), last.len() as u32)
}

fn perform(target: Target, values: Vec<ValueWork>) -> Result<(), CuResult> {
    if capture::takes(target, || Ok(NodeWork::Values(values.clone())))? {
        return Ok(());
    }
    for work in values {
        done(&Request::Value {
            context: target.context,
            stream: target.stream,
            work,
        })?;
    }
    Ok(())
}

driver! {
    fn cuStreamWaitValue32 | cuStreamWaitValue32_ptsz [defaults] (stream: Address, address: u64, value: u32, flags: u32) {
        let work = work(address, u64::from(value), 4, wait_action(flags)?)?;
        perform(target(stream, defaults, current)?, vec![work])
    }

    fn cuStreamWaitValue32_v2 | cuStreamWaitValue32_v2_ptsz [defaults] (stream: Address, address: u64, value: u32, flags: u32) {
        let work = work(address, u64::from(value), 4, wait_action(flags)?)?;
        perform(target(stream, defaults, current)?, vec![work])
    }

    fn cuStreamWaitValue64 | cuStreamWaitValue64_ptsz [defaults] (stream: Address, address: u64, value: u64, flags: u32) {
        let work = work(address, value, 8, wait_action(flags)?)?;
        perform(target(stream, defaults, current)?, vec![work])
    }

    fn cuStreamWaitValue64_v2 | cuStreamWaitValue64_v2_ptsz [defaults] (stream: Address, address: u64, value: u64, flags: u32) {
        let work = work(address, value, 8, wait_action(flags)?)?;
        perform(target(stream, defaults, current)?, vec![work])
    }

    fn cuStreamWriteValue32 | cuStreamWriteValue32_ptsz [defaults] (stream: Address, address: u64, value: u32, flags: u32) {
        let _ = flags; // Whether to order it after earlier writes: it always is.
        let work = work(address, u64::from(value), 4, ValueAction::Write)?;
        perform(target(stream, defaults, current)?, vec![work])
    }

    fn cuStreamWriteValue32_v2 | cuStreamWriteValue32_v2_ptsz [defaults] (stream: Address, address: u64, value: u32, flags: u32) {
        let _ = flags;
        let work = work(address, u64::from(value), 4, ValueAction::Write)?;
        perform(target(stream, defaults, current)?, vec![work])
    }

    fn cuStreamWriteValue64 | cuStreamWriteValue64_ptsz [defaults] (stream: Address, address: u64, value: u64, flags: u32) {
        let _ = flags;
        let work = work(address, value, 8, ValueAction::Write)?;
        perform(target(stream, defaults, current)?, vec![work])
    }

    fn cuStreamWriteValue64_v2 | cuStreamWriteValue64_v2_ptsz [defaults] (stream: Address, address: u64, value: u64, flags: u32) {
        let _ = flags;
        let work = work(address, value, 8, ValueAction::Write)?;
        perform(target(stream, defaults, current)?, vec![work])
    }

    fn cuStreamBatchMemOp | cuStreamBatchMemOp_ptsz [defaults] (stream: Address, count: u32, list: In<Operation>, flags: u32) {
        if flags != 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        perform(target(stream, defaults, current)?, operations(list, count)?)
    }

    fn cuStreamBatchMemOp_v2 | cuStreamBatchMemOp_v2_ptsz [defaults] (stream: Address, count: u32, list: In<Operation>, flags: u32) {
        if flags != 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        perform(target(stream, defaults, current)?, operations(list, count)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_reads_back_as_it_was_said() {
        assert_eq!(size_of::<Operation>(), 48);
        let operation = |kind, flags| Operation {
            kind,
            padding: 0,
            address: 64,
            value: 7,
            flags,
            rest: [0; 5],
        };
        let said = [
            operation(WRITE_64, 0),
            operation(BARRIER, 0),
            operation(WAIT_32, 3),
        ];
        let values = operations(In(said.as_ptr()), 3).unwrap();
        assert_eq!(values.len(), 2);
        let (list, count) = restored(&values);
        assert_eq!(operations(list, count), Ok(values));
        let odd = [operation(9, 0)];
        assert!(operations(In(odd.as_ptr()), 1).is_err());
    }
}
