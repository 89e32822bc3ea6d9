//! The front of the GPU, with the work distributor: launches wait here, and their blocks (CTAs) leave
//! for the SMs.
//!
//! Modelled: launch queues, how many kernels run at a time, occupancy of each SM, the order in which
//! SMs receive blocks, clusters, grids that begin before the one before has ended, the end of a kernel, the heap
//! that device code allocates from, grids that kernels launch. Left out: preemption.
//!
//! Start reading at [`WorkDistributor::run`].

mod clusters;
mod device_launches;
mod device_runtime;
mod ending;
mod heap;
mod parameters;
mod policy;
mod rounds;
mod running;
mod sending;
mod slots;
mod work_distributor;

pub use parameters::{DistributorParameters, DistributorWiring};
pub use policy::{DISPATCH_POLICIES, DispatchPolicy};
pub use slots::{BlockNeeds, block_shape};
pub use work_distributor::WorkDistributor;
