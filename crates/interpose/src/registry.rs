//! Libraries, kernels and variables, and the modules that they become in each context.
//!
//! What the runtime registers before `main` and what `cuLibraryLoadData` loads are the same
//! thing here: a library, which is code without a context. It becomes a module of a context
//! the first time that something of it is needed there. Kernels are named by a handle, by
//! the address of their host stub, or, once they are in a module, by a function.

use crate::call::{ask, call_with_message, done, unexpected};
use crate::fair_mutex::FairMutex;
use crate::opaque::{self, Kind};
use crate::process::lock;
use crate::types::Address;
use crate::{image, report};
use lockstep_protocol::{
    ContextHandle, CuResult, FunctionHandle, FunctionInfo, GlobalInfo, ModuleHandle, ModuleImage,
    Reply, Request,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A kernel in a context.
pub struct Function {
    /// What the simulator says of it; attributes change.
    pub info: FairMutex<FunctionInfo>,
    /// `CUfunc_cache`.
    pub cache_preference: FairMutex<u32>,
    /// Its module.
    pub module: ModuleHandle,
    /// Its context.
    pub context: ContextHandle,
}

/// Where the code of a library is.
enum Source {
    /// In the program, which keeps it: copied only when it is loaded.
    Program(usize),
    /// Images that were copied here.
    Copied(Vec<ModuleImage>),
}

struct Library {
    source: Source,
    modules: BTreeMap<ContextHandle, ModuleHandle>,
    managed: Vec<Managed>,
}

/// A managed variable: the host reads it through a pointer that we set.
struct Managed {
    pointer: usize,
    name: String,
}

#[derive(Clone)]
struct Symbol {
    library: u64,
    name: String,
}

struct Registry {
    next: u64,
    libraries: BTreeMap<u64, Library>,
    kernels: BTreeMap<u64, Symbol>,
    kernels_by_name: BTreeMap<(u64, String), u64>,
    kernels_by_stub: BTreeMap<Address, u64>,
    variables: BTreeMap<Address, Symbol>,
    functions: BTreeMap<FunctionHandle, Arc<Function>>,
    resolved: BTreeMap<(u64, ContextHandle), Arc<Function>>,
    modules: BTreeMap<ModuleHandle, ContextHandle>,
}

static REGISTRY: FairMutex<Registry> = FairMutex::new(Registry {
    next: 1,
    libraries: BTreeMap::new(),
    kernels: BTreeMap::new(),
    kernels_by_name: BTreeMap::new(),
    kernels_by_stub: BTreeMap::new(),
    variables: BTreeMap::new(),
    functions: BTreeMap::new(),
    resolved: BTreeMap::new(),
    modules: BTreeMap::new(),
});

/// Registers code that the program keeps. It is not looked at yet.
pub fn register_library(wrapper: usize) -> u64 {
    lock(&REGISTRY).add_library(Source::Program(wrapper))
}

/// Adds code that is here already.
pub fn add_library(images: Vec<ModuleImage>) -> u64 {
    lock(&REGISTRY).add_library(Source::Copied(images))
}

/// Removes a library and its modules.
pub fn remove_library(library: u64) -> Result<(), CuResult> {
    let mut registry = lock(&REGISTRY);
    let removed = registry.libraries.remove(&library);
    let removed = removed.ok_or(CuResult::INVALID_HANDLE)?;
    registry.forget_library(library, &removed);
    drop(registry);
    for module in removed.modules.into_values() {
        done(&Request::ModuleUnload { module })?;
    }
    Ok(())
}

/// Forgets what a shared object registered, because it is being unloaded or the program
/// ends. Its modules stay with the simulator: work that uses them may still be queued, and
/// an exit handler must not wait for the simulator.
pub fn unregister_library(library: u64) {
    let mut registry = lock(&REGISTRY);
    if let Some(removed) = registry.libraries.remove(&library) {
        registry.forget_library(library, &removed);
    }
}

/// Registers a kernel of a library under the address of its host stub.
pub fn register_kernel(library: u64, stub: Address, name: String) {
    let mut registry = lock(&REGISTRY);
    let kernel = registry.kernel(library, name);
    registry.kernels_by_stub.insert(stub, kernel);
}

/// Registers a variable of a library under its address on the host.
pub fn register_variable(library: u64, address: Address, name: String) {
    lock(&REGISTRY)
        .variables
        .insert(address, Symbol { library, name });
}

/// Registers a managed variable, which the host reads through the pointer at `pointer`.
pub fn register_managed(library: u64, pointer: usize, name: String) {
    let mut registry = lock(&REGISTRY);
    if let Some(library) = registry.libraries.get_mut(&library) {
        library.managed.push(Managed { pointer, name });
    }
}

/// The kernel behind the address of a host stub, as a handle.
pub fn kernel_of_stub(stub: Address) -> Option<Address> {
    let kernel = lock(&REGISTRY).kernels_by_stub.get(&stub).copied()?;
    Some(opaque::encode(Kind::Kernel, kernel))
}

/// The host stub of a kernel that has one, by the kernel's handle.
pub fn stub_of_kernel(handle: Address) -> Option<Address> {
    let kernel = opaque::decode(Kind::Kernel, handle)?;
    let registry = lock(&REGISTRY);
    let mut stubs = registry.kernels_by_stub.iter();
    stubs
        .find(|(_, known)| **known == kernel)
        .map(|(stub, _)| *stub)
}

/// A kernel of a library by name, as a handle. It must exist in `context`.
pub fn kernel_of_library(
    library: u64,
    name: String,
    context: ContextHandle,
) -> Result<Address, CuResult> {
    let mut registry = lock(&REGISTRY);
    let module = registry.load(library, context)?;
    if !registry
        .kernels_by_name
        .contains_key(&(library, name.clone()))
    {
        ask!(
            Function,
            &Request::ModuleFunction {
                module,
                name: name.clone()
            }
        );
    }
    Ok(opaque::encode(Kind::Kernel, registry.kernel(library, name)))
}

/// The library and name of a kernel.
pub fn kernel_symbol(handle: Address) -> Result<(u64, String), CuResult> {
    let kernel = opaque::decode(Kind::Kernel, handle).ok_or(CuResult::INVALID_HANDLE)?;
    let registry = lock(&REGISTRY);
    let symbol = registry
        .kernels
        .get(&kernel)
        .ok_or(CuResult::INVALID_HANDLE)?;
    Ok((symbol.library, symbol.name.clone()))
}

/// The kernel that any kind of handle names, in a context.
pub fn function(handle: Address, context: ContextHandle) -> Result<Arc<Function>, CuResult> {
    let mut registry = lock(&REGISTRY);
    if let Some(number) = opaque::decode(Kind::Function, handle) {
        let found = registry.functions.get(&FunctionHandle(number)).cloned();
        return found.ok_or(CuResult::INVALID_HANDLE);
    }
    let kernel = match opaque::decode(Kind::Kernel, handle) {
        Some(kernel) => kernel,
        None => {
            let found = registry.kernels_by_stub.get(&handle).copied();
            found.ok_or(CuResult::INVALID_HANDLE)?
        }
    };
    if let Some(function) = registry.resolved.get(&(kernel, context)) {
        return Ok(function.clone());
    }
    let symbol = registry.kernels.get(&kernel).cloned();
    let symbol = symbol.ok_or(CuResult::INVALID_HANDLE)?;
    let module = registry.load(symbol.library, context)?;
    let function = registry.find_function(module, context, symbol.name)?;
    registry
        .resolved
        .insert((kernel, context), function.clone());
    Ok(function)
}

/// A kernel of a module by name.
pub fn function_of_module(module: ModuleHandle, name: String) -> Result<Arc<Function>, CuResult> {
    let mut registry = lock(&REGISTRY);
    let context = registry.modules.get(&module).copied();
    let context = context.ok_or(CuResult::INVALID_HANDLE)?;
    registry.find_function(module, context, name)
}

/// The variable at a host address, in a context; `None` if none was registered there.
pub fn variable(address: Address, context: ContextHandle) -> Result<Option<GlobalInfo>, CuResult> {
    let mut registry = lock(&REGISTRY);
    let Some(symbol) = registry.variables.get(&address).cloned() else {
        return Ok(None);
    };
    let module = registry.load(symbol.library, context)?;
    let name = symbol.name;
    Ok(Some(ask!(Global, &Request::ModuleGlobal { module, name })))
}

/// The module that a library is in a context.
pub fn module_of_library(library: u64, context: ContextHandle) -> Result<ModuleHandle, CuResult> {
    lock(&REGISTRY).load(library, context)
}

/// Loads images into a context. A failure's message is the compiler's log.
pub fn load_module(
    context: ContextHandle,
    images: Vec<ModuleImage>,
) -> Result<ModuleHandle, (CuResult, String)> {
    let module = match call_with_message(&Request::ModuleLoad { context, images })? {
        Reply::Module(module) => module,
        other => return Err((unexpected("Module", &other), String::new())),
    };
    lock(&REGISTRY).modules.insert(module, context);
    Ok(module)
}

/// Unloads a module.
pub fn unload_module(module: ModuleHandle) -> Result<(), CuResult> {
    let mut registry = lock(&REGISTRY);
    if registry.modules.remove(&module).is_none() {
        return Err(CuResult::INVALID_HANDLE);
    }
    registry.forget_module(module);
    drop(registry);
    done(&Request::ModuleUnload { module })
}

/// Whether a module is loaded.
pub fn check_module(module: ModuleHandle) -> Result<(), CuResult> {
    match lock(&REGISTRY).modules.contains_key(&module) {
        true => Ok(()),
        false => Err(CuResult::INVALID_HANDLE),
    }
}

/// A context is new: managed variables must be in their places before the host reads them.
pub fn context_made(context: ContextHandle) -> Result<(), CuResult> {
    let mut registry = lock(&REGISTRY);
    let with_managed: Vec<u64> = registry
        .libraries
        .iter()
        .filter(|(_, library)| !library.managed.is_empty())
        .map(|(number, _)| *number)
        .collect();
    for library in with_managed {
        registry.load(library, context)?;
    }
    Ok(())
}

/// A context is gone, and with it all that was loaded there.
pub fn context_gone(context: ContextHandle) {
    let mut registry = lock(&REGISTRY);
    for library in registry.libraries.values_mut() {
        library.modules.remove(&context);
    }
    registry
        .functions
        .retain(|_, function| function.context != context);
    registry.resolved.retain(|key, _| key.1 != context);
    registry.modules.retain(|_, owner| *owner != context);
}

impl Registry {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn add_library(&mut self, source: Source) -> u64 {
        let number = self.number();
        let library = Library {
            source,
            modules: BTreeMap::new(),
            managed: Vec::new(),
        };
        self.libraries.insert(number, library);
        number
    }

    fn kernel(&mut self, library: u64, name: String) -> u64 {
        let key = (library, name.clone());
        if let Some(kernel) = self.kernels_by_name.get(&key) {
            return *kernel;
        }
        let number = self.number();
        self.kernels.insert(number, Symbol { library, name });
        self.kernels_by_name.insert(key, number);
        number
    }

    /// The module of a library in a context, loaded if it is not.
    fn load(&mut self, number: u64, context: ContextHandle) -> Result<ModuleHandle, CuResult> {
        let library = self.libraries.get_mut(&number);
        let library = library.ok_or(CuResult::INVALID_HANDLE)?;
        if let Some(module) = library.modules.get(&context) {
            return Ok(*module);
        }
        let images = match &library.source {
            // SAFETY: the program registered this address as its code and has not
            // unregistered it; until then CUDA demands that it stays.
            Source::Program(wrapper) => unsafe { image::from_pointer(*wrapper as *const u8) }?,
            Source::Copied(images) => images.clone(),
        };
        let module = match call_with_message(&Request::ModuleLoad { context, images }) {
            Ok(Reply::Module(module)) => module,
            Ok(other) => return Err(unexpected("Module", &other)),
            // In a context that is dead there is nothing new to say.
            Err((code, message)) if message.is_empty() => return Err(code),
            Err((code, message)) => {
                report::unless_said(&format!(
                    "the program's code cannot be loaded: {code}. {message}"
                ));
                return Err(code);
            }
        };
        library.modules.insert(context, module);
        self.modules.insert(module, context);
        for managed in &library.managed {
            let name = managed.name.clone();
            let global = ask!(Global, &Request::ModuleGlobal { module, name });
            // SAFETY: the program registered this as the address of its pointer to the
            // variable.
            unsafe { (managed.pointer as *mut u64).write_unaligned(global.address) };
        }
        Ok(module)
    }

    fn find_function(
        &mut self,
        module: ModuleHandle,
        context: ContextHandle,
        name: String,
    ) -> Result<Arc<Function>, CuResult> {
        let info = ask!(Function, &Request::ModuleFunction { module, name });
        if let Some(known) = self.functions.get(&info.handle) {
            return Ok(known.clone());
        }
        let handle = info.handle;
        let function = Arc::new(Function {
            info: FairMutex::new(*info),
            cache_preference: FairMutex::new(0),
            module,
            context,
        });
        self.functions.insert(handle, function.clone());
        Ok(function)
    }

    fn forget_library(&mut self, number: u64, library: &Library) {
        let gone = |symbol: &Symbol| symbol.library == number;
        let kernels: BTreeSet<u64> = self
            .kernels
            .iter()
            .filter(|(_, symbol)| gone(symbol))
            .map(|(kernel, _)| *kernel)
            .collect();
        self.kernels.retain(|_, symbol| !gone(symbol));
        self.kernels_by_name.retain(|key, _| key.0 != number);
        self.kernels_by_stub
            .retain(|_, kernel| !kernels.contains(kernel));
        self.variables.retain(|_, symbol| !gone(symbol));
        self.resolved.retain(|key, _| !kernels.contains(&key.0));
        for module in library.modules.values() {
            self.forget_module(*module);
        }
    }

    fn forget_module(&mut self, module: ModuleHandle) {
        self.modules.remove(&module);
        self.functions
            .retain(|_, function| function.module != module);
        self.resolved
            .retain(|_, function| function.module != module);
    }
}
