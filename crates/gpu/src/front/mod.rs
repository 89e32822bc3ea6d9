//! The front of the GPU: launches wait here, and their blocks (CTAs) leave for the SMs.
//!
//! Modelled: the launch queue, how many kernels run at a time, occupancy of each SM, the order in
//! which SMs receive blocks, the division of an SM's memory between shared memory and L1, the end of
//! a kernel, the heap that device code allocates from.
//! Left out: clusters that span several GPCs, priorities of streams, preemption.
//!
//! Start reading at [`work_distributor::Dispatcher::run`].

mod carveout;
mod heap;
mod policy;
mod rounds;
mod slots;
pub mod work_distributor;

pub use policy::{DISPATCH_POLICIES, DispatchPolicy, ranks};
pub use rounds::Units;
pub use slots::{BlockNeeds, SmLimits};
pub use work_distributor::{DispatchParameters, Dispatcher};
