//! Modules: code loaded into a context.

use super::function::handle_of;
use crate::boundary::driver;
use crate::call::ask;
use crate::context::current;
use crate::image;
use crate::opaque::{self, Kind};
use crate::registry;
use crate::types::{Address, In, Out, Text};
use lockstep_protocol::options::Group;
use lockstep_protocol::{CuResult, ModuleHandle, ModuleImage, Request};

/// The module of a handle.
pub fn decode(module: Address) -> Result<ModuleHandle, CuResult> {
    let number = opaque::decode(Kind::Module, module).ok_or(CuResult::INVALID_HANDLE)?;
    registry::check_module(ModuleHandle(number))?;
    Ok(ModuleHandle(number))
}

/// The images behind a pointer.
pub fn images(pointer: In<u8>) -> Result<Vec<ModuleImage>, CuResult> {
    // SAFETY: by CUDA's contract the program passes a complete image.
    unsafe { image::from_pointer(pointer.0) }
}

/// The images in a file.
pub fn images_of_file(path: &str) -> Result<Vec<ModuleImage>, CuResult> {
    let bytes = std::fs::read(path).map_err(|_| CuResult::FILE_NOT_FOUND)?;
    image::from_bytes(bytes)
}

fn load(module: Out<Address>, images: Vec<ModuleImage>, logs: Logs) -> Result<(), CuResult> {
    module.check()?;
    match registry::load_module(current()?, images) {
        Ok(handle) => {
            logs.write("", "");
            module.set(opaque::encode(Kind::Module, handle.0))
        }
        Err((code, message)) => {
            logs.write("", &message);
            Err(code)
        }
    }
}

/// Buffers that the program offers for the compiler's messages.
#[derive(Default)]
pub struct Logs {
    information: Option<LogBuffer>,
    errors: Option<LogBuffer>,
}

// SAFETY: the program offered the buffers to whichever thread loads or links for it.
unsafe impl Send for Logs {}

struct LogBuffer {
    text: Out<u8>,
    bytes: usize,
    /// Where the option's value stands: the length that was used goes there.
    length: Out<Address>,
}

impl Logs {
    /// Reads `CUjit_option`s: 3 and 4 are the buffer for information and its size, 5 and 6
    /// that for errors. The others steer a compiler that we do not have.
    pub fn of_options(count: u32, options: In<u32>, values: In<Address>) -> Result<Self, CuResult> {
        let mut found = [0; 7];
        let mut places = [0; 7];
        for index in 0..count as usize {
            let option = options.at(index)? as usize;
            if (3..=6).contains(&option) {
                found[option] = values.at(index)?;
                places[option] = values.address() + index * size_of::<Address>();
            }
            crate::options::accept(Group::JitOption, option as u32)?;
        }
        let buffer = |text: usize, size: usize| {
            let present = found[text] != 0 && found[size] != 0;
            present.then(|| LogBuffer {
                text: Out::at(found[text]),
                bytes: found[size] as u32 as usize,
                length: Out::at(places[size]),
            })
        };
        Ok(Self {
            information: buffer(3, 4),
            errors: buffer(5, 6),
        })
    }

    /// Writes both logs, as much as fits.
    pub fn write(&self, information: &str, errors: &str) {
        let write = |buffer: &Option<LogBuffer>, text: &str| {
            if let Some(buffer) = buffer
                && buffer.text.set_text(text, buffer.bytes).is_ok()
            {
                let used = text.len().min(buffer.bytes.saturating_sub(1));
                buffer.length.set_if_wanted(used);
            }
        };
        write(&self.information, information);
        write(&self.errors, errors);
    }
}

driver! {
    fn cuModuleLoad(module: Out<Address>, path: Text) {
        current()?;
        load(module, images_of_file(&path.get()?)?, Logs::default())
    }

    fn cuModuleLoadData(module: Out<Address>, image: In<u8>) {
        current()?;
        load(module, images(image)?, Logs::default())
    }

    fn cuModuleLoadDataEx(module: Out<Address>, image: In<u8>, count: u32, options: In<u32>, values: In<Address>) {
        current()?;
        load(module, images(image)?, Logs::of_options(count, options, values)?)
    }

    fn cuModuleLoadFatBinary(module: Out<Address>, image: In<u8>) {
        current()?;
        load(module, images(image)?, Logs::default())
    }

    fn cuModuleUnload(module: Address) {
        current()?;
        registry::unload_module(decode(module)?)
    }

    fn cuModuleGetFunction(function: Out<Address>, module: Address, name: Text) {
        function.check()?;
        current()?;
        let found = registry::function_of_module(decode(module)?, name.get()?)?;
        function.set(handle_of(&found))
    }

    fn cuModuleGetGlobal_v2(address: Out<Address>, bytes: Out<usize>, module: Address, name: Text) {
        current()?;
        let request = Request::ModuleGlobal { module: decode(module)?, name: name.get()? };
        let global = ask!(Global, &request);
        address.set_if_wanted(global.address as Address);
        bytes.set_if_wanted(global.bytes as usize);
        Ok(())
    }

    fn cuModuleGetFunctionCount(count: Out<u32>, module: Address) {
        let module = decode(module)?;
        let names = ask!(Names, &Request::ModuleFunctionNames { module });
        count.set(names.len() as u32)
    }

    fn cuModuleEnumerateFunctions(functions: Out<Address>, count: u32, module: Address) {
        let module = decode(module)?;
        let names = ask!(Names, &Request::ModuleFunctionNames { module });
        for (index, name) in names.into_iter().take(count as usize).enumerate() {
            let found = registry::function_of_module(module, name)?;
            functions.element(index).set(handle_of(&found))?;
        }
        Ok(())
    }

    fn cuModuleGetLoadingMode(mode: Out<u32>) {
        const LAZY: u32 = 2;
        mode.set(LAZY)
    }
}
