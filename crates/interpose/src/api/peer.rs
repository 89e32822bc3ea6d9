//! Access to another device's memory.

use crate::boundary::{RuntimeError, driver, runtime};
use crate::call::done;
use crate::context::{
    check_initialized, current, current_for_runtime, find, ordinal, retain_primary,
};
use crate::process::device;
use crate::types::{Address, Out};
use lockstep_protocol::{ContextHandle, CuResult, Request};

fn can_access(number: i32, peer: i32) -> Result<bool, CuResult> {
    let peer_ordinal = device(peer)?.ordinal;
    Ok(device(number)?.description.peers.contains(&peer_ordinal))
}

fn enable(context: ContextHandle, peer: ContextHandle) -> Result<(), CuResult> {
    done(&Request::PeerAccessEnable { context, peer })
}

fn disable(context: ContextHandle, peer: ContextHandle) -> Result<(), CuResult> {
    done(&Request::PeerAccessDisable { context, peer })
}

/// The primary context of a peer, kept for as long as the process lives.
fn peer_context(peer: i32) -> Result<ContextHandle, CuResult> {
    device(peer)?;
    ordinal(peer as usize)?;
    retain_primary(peer as usize)
}

runtime! {
    fn cudaDeviceCanAccessPeer(possible: Out<i32>, number: i32, peer: i32) {
        Ok(possible.set(i32::from(can_access(number, peer)?))?)
    }

    fn cudaDeviceEnablePeerAccess(peer: i32, flags: u32) {
        if flags != 0 {
            return Err(RuntimeError::INVALID_VALUE);
        }
        let context = current_for_runtime()?;
        if find(context)?.device as i32 == peer {
            return Err(CuResult::PEER_ACCESS_UNSUPPORTED.into());
        }
        Ok(enable(context, peer_context(peer)?)?)
    }

    fn cudaDeviceDisablePeerAccess(peer: i32) {
        Ok(disable(current_for_runtime()?, peer_context(peer)?)?)
    }

    fn cudaDeviceGetP2PAttribute(value: Out<i32>, attribute: u32, number: i32, peer: i32) {
        Ok(value.set(attribute_of(attribute, number, peer)?)?)
    }
}

driver! {
    fn cuDeviceCanAccessPeer(possible: Out<i32>, number: i32, peer: i32) {
        check_initialized()?;
        possible.set(i32::from(can_access(number, peer)?))
    }

    fn cuCtxEnablePeerAccess(peer: Address, flags: u32) {
        if flags != 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        enable(current()?, super::context::from_handle(peer)?)
    }

    fn cuCtxDisablePeerAccess(peer: Address) {
        disable(current()?, super::context::from_handle(peer)?)
    }

    fn cuDeviceGetP2PAttribute(value: Out<i32>, attribute: u32, number: i32, peer: i32) {
        check_initialized()?;
        value.set(attribute_of(attribute, number, peer)?)
    }
}

/// 1 is a rank of performance, where 0 is best and all links of a node are alike; 2 access, 3 native
/// atomics, which PCIe has not, 4 arrays.
fn attribute_of(attribute: u32, number: i32, peer: i32) -> Result<i32, CuResult> {
    if number == peer {
        return Err(CuResult::INVALID_DEVICE);
    }
    let access = i32::from(can_access(number, peer)?);
    match attribute {
        1 => Ok(0),
        2 | 4 => Ok(access),
        3 => {
            let peer = device(peer)?.ordinal;
            Ok(device(number)?.description.has_nvlink_to(peer).into())
        }
        _ => Err(CuResult::INVALID_VALUE),
    }
}
