//! The launch calls of CUDA before 7: configure, pass arguments one by one, launch.

use super::launch::{Arguments, launch_for_runtime};
use crate::boundary::{RuntimeError, runtime};
use crate::streams::Defaults;
use crate::thread::{self, Configuration};
use crate::types::{Address, Dim3, In};

/// No kernel takes more.
const MAXIMUM_ARGUMENTS: usize = 32 << 10;

fn launch(function: Address, defaults: Defaults) -> Result<(), RuntimeError> {
    let thread = thread::current();
    let popped = thread.configurations.borrow_mut().pop();
    let configuration = popped.ok_or(RuntimeError::MISSING_CONFIGURATION)?;
    // Arguments came one by one, at the offsets of the packed block.
    let mut block = thread.arguments.take();
    block.resize(MAXIMUM_ARGUMENTS, 0);
    let shape = (
        configuration.grid,
        configuration.block,
        configuration.shared,
    );
    let arguments = Arguments::Block(In(block.as_ptr()));
    launch_for_runtime(
        function,
        shape,
        arguments,
        configuration.stream,
        defaults,
        Default::default(),
    )
}

runtime! {
    fn cudaConfigureCall(grid: Dim3, block: Dim3, shared: usize, stream: Address) {
        let thread = thread::current();
        thread.arguments.borrow_mut().clear();
        thread.configurations.borrow_mut().push(Configuration { grid, block, shared, stream });
        Ok(())
    }

    fn cudaSetupArgument(argument: In<u8>, size: usize, offset: usize) {
        let end = offset.checked_add(size).filter(|end| *end <= MAXIMUM_ARGUMENTS);
        let end = end.ok_or(RuntimeError::INVALID_VALUE)?;
        let bytes = argument.bytes(size)?;
        let mut block = thread::current().arguments.borrow_mut();
        if block.len() < end {
            block.resize(end, 0);
        }
        block[offset..end].copy_from_slice(&bytes);
        Ok(())
    }

    fn cudaLaunch | cudaLaunch_ptsz [defaults] (function: Address) {
        launch(function, defaults)
    }
}
