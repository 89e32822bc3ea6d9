//! Variables of the program's code: their addresses, and copies to and from them.

use super::copy::{Side, perform};
use super::memory::pointer_info;
use crate::boundary::{RuntimeError, runtime};
use crate::context::current_for_runtime;
use crate::registry;
use crate::streams::{Target, target};
use crate::types::{Address, Out};
use lockstep_protocol::{ContextHandle, Extent, GlobalInfo, PointerKind};

fn find(symbol: Address, context: ContextHandle) -> Result<GlobalInfo, RuntimeError> {
    match registry::variable(symbol, context) {
        Ok(Some(global)) => Ok(global),
        Ok(None) => managed(symbol),
        Err(error) => Err(error.into()),
    }
}

/// A managed variable is passed by the address where it lives, not by that of a shadow.
fn managed(symbol: Address) -> Result<GlobalInfo, RuntimeError> {
    match pointer_info(symbol)? {
        Some(info) if info.kind == PointerKind::Managed => Ok(GlobalInfo {
            address: info.base,
            bytes: info.bytes,
            managed: true,
        }),
        _ => Err(RuntimeError::INVALID_SYMBOL),
    }
}

/// The address of `count` bytes at `offset` of a variable, if it has them.
pub fn part(
    symbol: Address,
    target: Target,
    offset: usize,
    count: usize,
) -> Result<Address, RuntimeError> {
    let global = find(symbol, target.context)?;
    match offset.checked_add(count) {
        Some(end) if end as u64 <= global.bytes => Ok(global.address as Address + offset),
        _ => Err(RuntimeError::INVALID_VALUE),
    }
}

fn to_symbol(
    target: Target,
    symbol: Address,
    source: Address,
    count: usize,
    offset: usize,
    kind: u32,
    wait: bool,
) -> Result<(), RuntimeError> {
    if !matches!(kind, 1 | 3 | 4) {
        return Err(RuntimeError::INVALID_COPY_DIRECTION);
    }
    let address = part(symbol, target, offset, count)?;
    let (to, from) = (Side::linear(address, count), Side::linear(source, count));
    Ok(perform(
        target,
        to,
        from,
        Extent::linear(count as u64),
        wait,
    )?)
}

fn from_symbol(
    target: Target,
    destination: Address,
    symbol: Address,
    count: usize,
    offset: usize,
    kind: u32,
    wait: bool,
) -> Result<(), RuntimeError> {
    if !matches!(kind, 2..=4) {
        return Err(RuntimeError::INVALID_COPY_DIRECTION);
    }
    let address = part(symbol, target, offset, count)?;
    let (to, from) = (
        Side::linear(destination, count),
        Side::linear(address, count),
    );
    Ok(perform(
        target,
        to,
        from,
        Extent::linear(count as u64),
        wait,
    )?)
}

runtime! {
    fn cudaGetSymbolAddress(pointer: Out<Address>, symbol: Address) {
        let global = find(symbol, current_for_runtime()?)?;
        Ok(pointer.set(global.address as Address)?)
    }

    fn cudaGetSymbolSize(bytes: Out<usize>, symbol: Address) {
        let global = find(symbol, current_for_runtime()?)?;
        Ok(bytes.set(global.bytes as usize)?)
    }

    fn cudaMemcpyToSymbol | cudaMemcpyToSymbol_ptds [defaults] (symbol: Address, source: Address, count: usize, offset: usize, kind: u32) {
        let target = target(0, defaults, current_for_runtime)?;
        to_symbol(target, symbol, source, count, offset, kind, true)
    }

    fn cudaMemcpyToSymbolAsync | cudaMemcpyToSymbolAsync_ptsz [defaults] (symbol: Address, source: Address, count: usize, offset: usize, kind: u32, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        to_symbol(target, symbol, source, count, offset, kind, false)
    }

    fn cudaMemcpyFromSymbol | cudaMemcpyFromSymbol_ptds [defaults] (destination: Address, symbol: Address, count: usize, offset: usize, kind: u32) {
        let target = target(0, defaults, current_for_runtime)?;
        from_symbol(target, destination, symbol, count, offset, kind, true)
    }

    fn cudaMemcpyFromSymbolAsync | cudaMemcpyFromSymbolAsync_ptsz [defaults] (destination: Address, symbol: Address, count: usize, offset: usize, kind: u32, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        from_symbol(target, destination, symbol, count, offset, kind, false)
    }
}
