//! Instructions: their semantics on 32 lanes, and what an SM sees of them.
//!
//! Front ends (`lockstep-frontend`) turn PTX or SASS into a [`Module`]: one flat array of
//! [`Instruction`]s with entry points. An instruction is decoded once, when it is first needed; its effect is an
//! [`Operation`]: a function on warp registers, or a description of a memory access, a
//! branch, a barrier that the SM carries out. The same executor serves PTX and SASS.
//!
//! Start reading at [`instruction::Instruction`], then [`convergence::Convergence`] (how a
//! warp diverges and reconverges) and [`module::Module`].

pub mod addresses;
pub mod bulk;
pub mod code;
pub mod convergence;
pub mod device_runtime;
pub mod instruction;
pub mod lanes;
pub mod launch;
pub mod memory;
pub mod module;
pub mod operand;
pub mod ptx;
pub mod sass;
pub mod semantics;
pub mod tensor;
pub mod texture;
pub mod trace;
pub mod verify;
pub mod warp_register;
pub mod warpgroup;

pub use code::{Code, MachineCode};
pub use convergence::Convergence;
pub use instruction::{Control, Instruction, Operation, Unit};
pub use lanes::Lanes;
pub use launch::Launch;
pub use memory::MemoryOperation;
pub use module::{Kernel, Module};
pub use operand::{Operand, PredicateOperand, Source};
pub use verify::{JumpTargets, Verified, Verifier};
pub use warp_register::{Mask, WarpRegister};
