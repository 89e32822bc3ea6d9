//! What a pointer is.

use super::context::to_handle;
use super::memory::pointer_info;
use super::register::{self, is_registered};
use crate::boundary::{driver, runtime};
use crate::context::{check_initialized, current_for_runtime, visible_device};
use crate::types::{Address, In, Out};
use lockstep_protocol::options::Group;
use lockstep_protocol::{CuResult, PointerInfo, PointerKind};

/// `cudaPointerAttributes`, as far as all versions have it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attributes {
    kind: i32,
    device: i32,
    device_pointer: Address,
    host_pointer: Address,
}

/// What ordinary memory of the program has for a device.
const NO_DEVICE: i32 = -2;

fn device_of(info: &PointerInfo) -> i32 {
    visible_device(info.device).map_or(NO_DEVICE, |device| device as i32)
}

/// `CU_POINTER_ATTRIBUTE_*`: how many bytes an answer has, and its value.
fn attribute(
    number: u32,
    address: Address,
    info: Option<&PointerInfo>,
) -> Result<(usize, u64), CuResult> {
    const HOST: u64 = 1;
    const DEVICE: u64 = 2;
    let address = address as u64;
    let known = |value: &dyn Fn(&PointerInfo) -> u64| info.map_or(0, value);
    Ok(match number {
        1 => (8, known(&|info| to_handle(info.context) as u64)),
        2 => (
            4,
            known(&|info| {
                if info.kind == PointerKind::Host {
                    HOST
                } else {
                    DEVICE
                }
            }),
        ),
        3 => (8, known(&|_| address)),
        4 => (
            8,
            known(&|info| {
                if info.kind == PointerKind::Device {
                    0
                } else {
                    address
                }
            }),
        ),
        6 => (4, 0),
        7 | 20 => (8, known(&|info| info.identity)),
        8 => (
            4,
            known(&|info| u64::from(info.kind == PointerKind::Managed)),
        ),
        9 => (4, info.map_or(NO_DEVICE, device_of) as u64),
        10 => (4, 0),
        11 | 19 => (8, known(&|info| info.base)),
        12 | 18 => (8, known(&|info| info.bytes)),
        13 => (4, known(&|_| 1)),
        14 | 17 => (8, 0),
        15 => (4, 0),
        16 => (4, known(&|_| 3)),
        21 => (4, 0),
        _ => return Err(CuResult::INVALID_VALUE),
    })
}

/// Ordinary memory of the program, registered or not.
fn of_program(address: Address) -> Attributes {
    let registered = is_registered(address);
    Attributes {
        kind: i32::from(registered),
        device: if registered { 0 } else { NO_DEVICE },
        device_pointer: if registered {
            register::device_pointer(address).unwrap_or(0)
        } else {
            0
        },
        host_pointer: address,
    }
}

fn write(data: Out<u8>, answer: (usize, u64)) -> Result<(), CuResult> {
    data.set_bytes(&answer.1.to_le_bytes()[..answer.0])
}

runtime! {
    fn cudaPointerGetAttributes(attributes: Out<Attributes>, address: Address) {
        current_for_runtime()?;
        let Some(info) = pointer_info(address)? else {
            return Ok(attributes.set(of_program(address))?);
        };
        let (kind, host_pointer) = match info.kind {
            PointerKind::Host => (1, address),
            PointerKind::Device => (2, 0),
            PointerKind::Managed => (3, address),
        };
        let device = device_of(&info);
        Ok(attributes.set(Attributes { kind, device, device_pointer: address, host_pointer })?)
    }
}

driver! {
    /// An address that nobody allocated is an invalid value here, unlike below.
    fn cuPointerGetAttribute(data: Out<u8>, number: u32, address: Address) {
        check_initialized()?;
        let info = pointer_info(address)?.ok_or(CuResult::INVALID_VALUE)?;
        write(data, attribute(number, address, Some(&info))?)
    }

    fn cuPointerGetAttributes(count: u32, numbers: In<u32>, data: In<Out<u8>>, address: Address) {
        check_initialized()?;
        let info = pointer_info(address)?;
        for index in 0..count as usize {
            let answer = attribute(numbers.at(index)?, address, info.as_ref())?;
            write(data.at(index)?, answer)?;
        }
        Ok(())
    }

    fn cuPointerSetAttribute(value: In<u8>, number: u32, address: Address) {
        const SYNCHRONOUS: u32 = 6;
        check_initialized()?;
        pointer_info(address)?.ok_or(CuResult::INVALID_VALUE)?;
        if value.is_null() || number != SYNCHRONOUS {
            return Err(CuResult::INVALID_VALUE);
        }
        crate::options::accept(Group::PointerAttribute, number)
    }
}
