//! Linking code at run time.
//!
//! The result is not machine code but an image of ours that every call which loads code
//! accepts: the one input itself, or a list of all.

use super::module::Logs;
use crate::boundary::driver;
use crate::context::current;
use crate::fair_mutex::FairMutex;
use crate::image;
use crate::opaque::{self, Kind};
use crate::process::lock;
use crate::registry;
use crate::types::{Address, In, Out, Text};
use lockstep_protocol::{CuResult, ModuleImage, UnsupportedManner};
use std::collections::BTreeMap;

#[derive(Default)]
struct Link {
    inputs: Vec<ModuleImage>,
    /// The result, which stays until the link is destroyed.
    result: Option<Box<[u8]>>,
    logs: Logs,
}

static LINKS: FairMutex<(u64, BTreeMap<u64, Link>)> = FairMutex::new((1, BTreeMap::new()));

fn create(count: u32, options: In<u32>, values: In<Address>) -> Result<Address, CuResult> {
    let logs = Logs::of_options(count, options, values)?;
    let mut links = lock(&LINKS);
    links.0 += 1;
    let number = links.0;
    let link = Link {
        logs,
        ..Link::default()
    };
    links.1.insert(number, link);
    Ok(opaque::encode(Kind::Link, number))
}

fn with<T>(
    state: Address,
    act: impl FnOnce(&mut Link) -> Result<T, CuResult>,
) -> Result<T, CuResult> {
    let number = opaque::decode(Kind::Link, state).ok_or(CuResult::INVALID_HANDLE)?;
    let mut links = lock(&LINKS);
    act(links.1.get_mut(&number).ok_or(CuResult::INVALID_HANDLE)?)
}

/// `CUjitInputType`.
const CUBIN: u32 = 0;
const PTX: u32 = 1;
const FAT_BINARY: u32 = 2;
const OBJECT: u32 = 3;

fn add(state: Address, kind: u32, bytes: Vec<u8>) -> Result<(), CuResult> {
    if !matches!(kind, CUBIN | PTX | FAT_BINARY | OBJECT) {
        crate::call::note("linking a library of objects", UnsupportedManner::Option);
        return Err(CuResult::NOT_SUPPORTED);
    }
    let images = image::from_bytes(bytes)?;
    with(state, |link| {
        link.inputs.extend(images);
        Ok(())
    })
}

fn complete(state: Address, result: Out<Address>, bytes: Out<usize>) -> Result<(), CuResult> {
    let context = current()?;
    with(state, |link| {
        if link.inputs.is_empty() {
            return Err(CuResult::INVALID_VALUE);
        }
        let image = image::linked(&link.inputs);
        // Loading it once finds what is wrong with it.
        match registry::load_module(context, image::from_bytes(image.clone())?) {
            Ok(module) => registry::unload_module(module)?,
            Err((code, message)) => {
                link.logs.write("", &message);
                return Err(code);
            }
        }
        link.logs.write("", "");
        let kept = link.result.insert(image.into_boxed_slice());
        result.set_if_wanted(kept.as_ptr() as Address);
        bytes.set_if_wanted(kept.len());
        Ok(())
    })
}

driver! {
    fn cuLinkCreate_v2(count: u32, options: In<u32>, values: In<Address>, state: Out<Address>) {
        state.check()?;
        current()?;
        state.set(create(count, options, values)?)
    }

    fn cuLinkAddData_v2(state: Address, kind: u32, data: In<u8>, bytes: usize, name: Text, count: u32, options: In<u32>, values: In<Address>) {
        let _ = (name, count, options, values); // What steers a compiler that we do not have.
        add(state, kind, data.bytes(bytes)?)
    }

    fn cuLinkAddFile_v2(state: Address, kind: u32, path: Text, count: u32, options: In<u32>, values: In<Address>) {
        let _ = (count, options, values);
        let bytes = std::fs::read(path.get()?).map_err(|_| CuResult::FILE_NOT_FOUND)?;
        add(state, kind, bytes)
    }

    fn cuLinkComplete(state: Address, result: Out<Address>, bytes: Out<usize>) {
        complete(state, result, bytes)
    }

    fn cuLinkDestroy(state: Address) {
        let number = opaque::decode(Kind::Link, state).ok_or(CuResult::INVALID_HANDLE)?;
        match lock(&LINKS).1.remove(&number) {
            Some(_) => Ok(()),
            None => Err(CuResult::INVALID_HANDLE),
        }
    }
}
