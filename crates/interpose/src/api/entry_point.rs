//! Finding functions by name.

use crate::boundary::{driver, runtime};
use crate::call;
use crate::entries::{self, Lookup};
use crate::types::{Address, Out, Text};
use lockstep_protocol::{CuResult, UnsupportedManner};

/// `cudaDriverEntryPointQueryResult`, `CUdriverProcAddressQueryResult`.
#[derive(Clone, Copy)]
#[repr(i32)]
enum Status {
    Found = 0,
    NotFound = 1,
    VersionNotSufficient = 2,
}

/// Flag: the per-thread default stream.
const PER_THREAD: u64 = 2;
/// The newest version, for callers that name none.
const NEWEST: u32 = 13030;

fn find(symbol: Text, version: u32, flags: u64) -> Result<(Address, Status), CuResult> {
    let name = symbol.get()?;
    Ok(
        match entries::look_up(&name, version, flags & PER_THREAD != 0) {
            Lookup::Found(entry) if entry.implemented() => (entry.address(), Status::Found),
            Lookup::VersionTooOld => (0, Status::VersionNotSufficient),
            Lookup::NotFound if name.is_empty() => (0, Status::NotFound),
            Lookup::Found(_) | Lookup::NotFound => {
                call::note(&name, UnsupportedManner::AskedFor);
                (0, Status::NotFound)
            }
        },
    )
}

runtime! {
    fn cudaGetDriverEntryPoint | cudaGetDriverEntryPoint_ptsz [defaults] (symbol: Text, function: Out<Address>, flags: u64, status: Out<i32>) {
        let flags = flags | if defaults == crate::streams::Defaults::PerThread { PER_THREAD } else { 0 };
        let (address, found) = find(symbol, NEWEST, flags)?;
        status.set_if_wanted(found as i32);
        Ok(function.set(address)?)
    }

    fn cudaGetDriverEntryPointByVersion | cudaGetDriverEntryPointByVersion_ptsz [defaults] (symbol: Text, function: Out<Address>, version: u32, flags: u64, status: Out<i32>) {
        let flags = flags | if defaults == crate::streams::Defaults::PerThread { PER_THREAD } else { 0 };
        let (address, found) = find(symbol, version, flags)?;
        status.set_if_wanted(found as i32);
        Ok(function.set(address)?)
    }
}

driver! {
    fn cuGetProcAddress(symbol: Text, function: Out<Address>, version: u32, flags: u64) {
        let (address, _) = find(symbol, version, flags)?;
        function.set(address)?;
        if address == 0 { Err(CuResult::NOT_FOUND) } else { Ok(()) }
    }

    fn cuGetProcAddress_v2(symbol: Text, function: Out<Address>, version: u32, flags: u64, status: Out<i32>) {
        let (address, found) = find(symbol, version, flags)?;
        function.set(address)?;
        // Whoever asks for the status is told there.
        if address == 0 && status.pointer().is_null() {
            return Err(CuResult::NOT_FOUND);
        }
        status.set_if_wanted(found as i32);
        Ok(())
    }
}
