//! Attributes of streams: what was set reads back, and priorities are told to the simulator.

use super::launch_attribute::{
    DOMAIN, DOMAIN_MAP, PRIORITY, Value, WINDOW, check_domains, check_window,
};
use crate::fair_mutex::FairMutex;
use crate::options;
use crate::process::lock;
use crate::streams::{self, created};
use crate::types::{Address, In, Out};
use lockstep_protocol::CuResult;
use lockstep_protocol::options::Group;
use std::collections::BTreeMap;

/// `cudaLaunchAttributeSynchronizationPolicy`.
const POLICY: u32 = 3;

/// What programs set, by stream and attribute.
static ATTRIBUTES: FairMutex<BTreeMap<(Address, u32), Value>> = FairMutex::new(BTreeMap::new());

/// Forgets the attributes of a stream that is gone.
pub fn forget(stream: Address) {
    lock(&ATTRIBUTES).retain(|(known, _), _| *known != stream);
}

/// What a new stream has.
fn default_value(number: u32) -> Value {
    let mut value = [0; 16];
    value[0] = match number {
        // No policy at all, as a GPU's driver says it.
        POLICY => u32::MAX,
        // Remote writes have a domain of their own.
        DOMAIN_MAP => u32::from_le_bytes([0, 1, 0, 0]),
        _ => 0,
    };
    value
}

fn value_of(stream: Address, number: u32) -> Result<Value, CuResult> {
    let found = created(stream)?;
    match number {
        PRIORITY => {
            let mut value = [0; 16];
            value[0] = found.map_or(0, |stream| stream.priority) as u32;
            Ok(value)
        }
        WINDOW | POLICY | DOMAIN_MAP | DOMAIN => {
            let known = lock(&ATTRIBUTES).get(&(stream, number)).copied();
            Ok(known.unwrap_or(default_value(number)))
        }
        _ => Err(CuResult::INVALID_VALUE),
    }
}

/// Reads an attribute.
pub fn get(stream: Address, number: u32, value: Out<u8>) -> Result<(), CuResult> {
    let words = value_of(stream, number)?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    value.set_bytes(&bytes)
}

/// Sets an attribute.
pub fn set(stream: Address, number: u32, value: In<Value>) -> Result<(), CuResult> {
    created(stream)?;
    let value = value.get()?;
    let used = match number {
        PRIORITY => {
            options::accept(Group::StreamAttribute, number)?;
            return streams::set_priority(stream, value[0] as i32);
        }
        WINDOW => check_window(&value)?,
        // Auto, spin, yield, block.
        POLICY if !(1..=4).contains(&value[0]) => return Err(CuResult::INVALID_VALUE),
        POLICY => value[0] != 1,
        DOMAIN_MAP => check_domains(&value)?,
        DOMAIN if value[0] > 1 => return Err(CuResult::INVALID_VALUE),
        DOMAIN => value[0] != 0,
        _ => true,
    };
    if used {
        options::accept(Group::StreamAttribute, number)?;
    }
    lock(&ATTRIBUTES).insert((stream, number), value);
    Ok(())
}

/// Gives one stream the attributes of another.
pub fn copy(to: Address, from: Address) -> Result<(), CuResult> {
    let priority = created(from)?.map_or(0, |stream| stream.priority);
    if created(to)?.is_some() {
        streams::set_priority(to, priority)?;
    }
    let mut attributes = lock(&ATTRIBUTES);
    for number in [WINDOW, POLICY, DOMAIN_MAP, DOMAIN] {
        match attributes.get(&(from, number)).copied() {
            Some(value) => attributes.insert((to, number), value),
            None => attributes.remove(&(to, number)),
        };
    }
    Ok(())
}
