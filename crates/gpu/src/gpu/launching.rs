//! Launches as they are handed over: what is refused, and what the hardware adds to the rest.
//!
//! Start reading at [`Gpu::launch`].

use std::sync::{Arc, OnceLock, Weak};

use lockstep_config::occupancy::{SmLimits, largest_cluster};
use lockstep_isa::{Launch, Module, Verified, Verifier};

use super::{Gpu, Mode};
use crate::error::GpuError;
use crate::front::{BlockNeeds, block_shape};
use crate::launch::{LaunchContext, LaunchId, LaunchedBy};
use crate::memory::LINE;
use crate::message::Message;
use crate::sm::front_end::issue_table::IssueTable;

/// Queues of grids that kernels launched: each has its own, and the work distributor knows their order.
const DEVICE_QUEUES: u64 = 1 << 63;

impl Gpu {
    /// Hands over a launch.
    ///
    /// # Errors
    /// If no SM can hold a block of it, or its shape is impossible.
    pub fn launch(&mut self, launch: Launch) -> Result<LaunchId, GpuError> {
        self.check(&launch)?;
        self.begin(launch, None)
    }

    /// Makes launches of the grids that kernels launched and that nothing holds back, in the order in which the
    /// work distributor came to them. Only between epochs are there launches that were not there before.
    ///
    /// # Errors
    /// Never for launches that the work distributor has checked.
    pub(super) fn begin_device_launches(&mut self) -> Result<(), GpuError> {
        for ready in self.distributor_mut().take_device_launches() {
            let Some(parent) = self.launches.get(ready.parent) else {
                continue;
            };
            let by = &parent.launch;
            let launch = Launch {
                kernel: ready.launch.kernel,
                config: ready.launch.config,
                carveout: None,
                arguments: ready.launch.arguments,
                queue: DEVICE_QUEUES | ready.grid,
                cluster: None,
                programmatic: false,
                of_graph: false,
                cooperative: None,
                at: ready.at,
                module: parent.module.clone(),
                module_id: by.module_id,
                stack: by.stack,
                priority: by.priority,
                constants: by.constants.clone(),
                textures: by.textures.clone(),
                device_runtime: by.device_runtime.clone(),
            };
            let launched_by = LaunchedBy {
                parent: parent.id,
                root: parent.launched_by.map_or(parent.id, |by| by.root),
            };
            let id = self.begin(launch, Some(launched_by))?;
            self.distributor_mut().device_launch_begun(ready.grid, id);
        }
        Ok(())
    }

    /// The launch by the host that a launch under way goes back to: itself, if the host launched it.
    #[must_use]
    pub fn root_of(&self, id: LaunchId) -> LaunchId {
        let context = self.launches.get(id.0);
        let by = context.and_then(|context| context.launched_by);
        by.map_or(id, |by| by.root)
    }

    /// Whether kernels launched grids that nothing holds back.
    pub(super) fn has_device_launches(&self) -> bool {
        self.distributor().has_device_launches()
    }

    /// Adds what the hardware adds to a launch, and lets the work distributor know.
    fn begin(
        &mut self,
        mut launch: Launch,
        launched_by: Option<LaunchedBy>,
    ) -> Result<LaunchId, GpuError> {
        let id = LaunchId(self.next_launch);
        self.next_launch += 1;
        let due = launch.at.max(self.now());
        let module = launch.module.clone();
        let verified = self.verify(&mut launch);
        let issue_table = self.issue_table_of(&launch.module);
        let l1_ways = self.l1_ways(&launch);
        self.note_untimed_launch(&launch);
        self.launches.insert(Arc::new(LaunchContext {
            id,
            launch,
            module,
            launched_by,
            constants: OnceLock::new(),
            issue_table,
            l1_ways,
            verified,
        }));
        self.engine
            .post(self.places.distributor, due, Message::Launch(id.0))?;
        Ok(id)
    }

    /// Verifies the code that a launch can reach; the launch gets a module without what it cannot
    /// execute. Nothing but the first launch of a kernel costs time.
    pub(super) fn verify(&mut self, launch: &mut Launch) -> Arc<Verified> {
        self.verifiers.retain(|(known, _)| known.strong_count() > 0);
        let here = Arc::as_ptr(&launch.module);
        let known = self
            .verifiers
            .iter()
            .position(|(known, _)| Weak::as_ptr(known) == here);
        let place = known.unwrap_or_else(|| {
            let module = Arc::downgrade(&launch.module);
            self.verifiers.push((module, Verifier::default()));
            self.verifiers.len() - 1
        });
        let verified = self.verifiers[place]
            .1
            .kernel(&launch.module, launch.kernel);
        if let Some(patched) = &verified.patched {
            launch.module = patched.clone();
        }
        verified
    }

    pub(super) fn issue_table_of(&mut self, module: &Arc<Module>) -> Arc<IssueTable> {
        if self.options.mode == Mode::Functional && !self.options.checks.control_bits {
            return Arc::default();
        }
        // A module that only its table holds is gone.
        self.issue_tables.retain(|known| {
            known
                .module()
                .is_some_and(|known| Arc::strong_count(known) > 1)
        });
        let found = self.issue_tables.iter().find(|known| {
            known
                .module()
                .is_some_and(|known| Arc::ptr_eq(known, module))
        });
        if let Some(issue_table) = found {
            return issue_table.clone();
        }
        let issue_table = Arc::new(IssueTable::new(module, &self.parameters));
        self.issue_tables.push(issue_table.clone());
        issue_table
    }

    /// Ways of L1 that a launch leaves.
    pub(super) fn l1_ways(&self, launch: &Launch) -> u32 {
        let limits = SmLimits::new(&self.config.sm);
        let set_aside = limits.carve_out(block_shape(launch), launch.carveout);
        let l1 = &self.config.l1;
        let all = self.config.sm.unified_data_cache.0;
        let left = all.saturating_sub(set_aside);
        (left.saturating_sub(l1.reserved.0) / (u64::from(l1.sets) * LINE)) as u32
    }

    /// Refuses what no SM can hold, and shapes that are impossible.
    fn check(&self, launch: &Launch) -> Result<(), GpuError> {
        let name = launch.module.kernels.get(launch.kernel);
        let refuse = |because: String| {
            Err(GpuError::Launch {
                kernel: name
                    .map_or_else(|| format!("number {}", launch.kernel), |k| k.name.clone()),
                because,
            })
        };
        let Some(kernel) = name else {
            return refuse(format!(
                "the module has {} kernels",
                launch.module.kernels.len()
            ));
        };
        let threads = launch.config.threads();
        if threads == 0 || launch.config.grid.contains(&0) {
            return refuse(format!(
                "grid {:?} and block {:?} must not be empty",
                launch.config.grid, launch.config.block
            ));
        }
        if threads > 1024 {
            return refuse(format!("a block has at most 1024 threads, not {threads}"));
        }
        let limits = SmLimits::new(&self.config.sm);
        if u64::from(launch.own_shared()) > limits.shared_per_block {
            return refuse(format!(
                "a block takes {} bytes of shared memory, and {} are the most",
                launch.own_shared(),
                limits.shared_per_block
            ));
        }
        let (cluster, grid) = (launch.cluster(), launch.config.grid);
        if cluster.contains(&0) || (0..3).any(|axis| grid[axis] % cluster[axis] != 0) {
            return refuse(format!(
                "a grid of {grid:?} blocks is not made of clusters of {cluster:?}"
            ));
        }
        let largest = largest_cluster(&self.config);
        if launch.cluster_blocks() > largest {
            return refuse(format!(
                "a cluster of {} blocks, and {largest} are the most",
                launch.cluster_blocks()
            ));
        }
        let needs = BlockNeeds::new(launch, &limits);
        if needs.most == 0 {
            return refuse(format!(
                "a block of {} warps with {} registers a thread and {} bytes of shared memory \
                 fits on no SM",
                needs.warps, kernel.registers, needs.shared
            ));
        }
        Ok(())
    }
}
