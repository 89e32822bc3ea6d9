//! A kernel launch: which code runs, in which grid, with what.
//!
//! The runtime makes it from a CUDA call, the hardware runs it: one type from the stream to the
//! work distributor. What CUDA knows besides (contexts, handles) stays in the runtime;
//! what the hardware knows besides (its number, constant banks, what instructions cost) is added
//! there.

use std::ops::Range;
use std::sync::Arc;

use lockstep_units::{LaunchConfig, TextureTable, Time};

use crate::device_runtime::DeviceRuntime;
use crate::module::{Kernel, Module};

/// Bytes of stack of a thread where nobody asked for more or less, as CUDA has it.
const DEFAULT_STACK: u32 = 1 << 10;

/// A kernel and what it is launched with.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The code.
    pub module: Arc<Module>,
    /// What a saved launch finds its module by again; who keeps modules sets it.
    pub module_id: u64,
    /// Which kernel of the module.
    pub kernel: usize,
    /// Grid, block and dynamic shared memory.
    pub config: LaunchConfig,
    /// Shared memory that the kernel wants an SM to set aside, in bytes; none if the hardware chooses.
    pub carveout: Option<u64>,
    /// Bytes of stack that a thread gets if the kernel calls functions.
    pub stack: u32,
    /// The arguments as they lie from the parameter base.
    pub arguments: Vec<u8>,
    /// Launches of one queue run one after the other.
    pub queue: u64,
    /// Blocks of a launch with a lower number are sent out before those of one with a higher.
    pub priority: i32,
    /// Blocks of a cluster by axis, if the launch says so; else the kernel may.
    pub cluster: Option<[u32; 3]>,
    /// May begin before the launch before it in its queue has ended, as soon as that one lets it
    /// (programmatic dependent launch).
    pub programmatic: bool,
    /// A graph has it: the front end knows of it before the kernel before it ends.
    pub of_graph: bool,
    /// Work space for grid-wide barriers, if the launch is cooperative.
    pub cooperative: Option<u64>,
    /// Bytes of constant banks that differ from the module's: bank, offset, bytes.
    pub constants: Vec<(u8, u32, Vec<u8>)>,
    /// Textures and surfaces that its handles name.
    pub textures: Arc<TextureTable>,
    /// What its kernel is told if it launches kernels, where its module can do so.
    pub device_runtime: Option<Arc<DeviceRuntime>>,
    /// When it may begin; now if that has passed.
    pub at: Time,
}

impl Launch {
    /// A launch of the first kernel with this name, on queue 0. `None` if there is none.
    #[must_use]
    pub fn new(
        module: &Arc<Module>,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
    ) -> Option<Self> {
        let kernel = module.kernels.iter().position(|k| k.name == kernel)?;
        Some(Self {
            module: module.clone(),
            module_id: 0,
            kernel,
            config: LaunchConfig::new(grid, block),
            carveout: None,
            stack: DEFAULT_STACK,
            arguments: Vec::new(),
            queue: 0,
            priority: 0,
            cluster: None,
            programmatic: false,
            of_graph: false,
            cooperative: None,
            constants: Vec::new(),
            textures: Arc::default(),
            device_runtime: None,
            at: Time::ZERO,
        })
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.module.kernels[self.kernel]
    }

    /// Instructions of the kernel itself, without functions that it calls.
    #[must_use]
    pub fn code(&self) -> Range<u32> {
        let entry = self.kernel().entry;
        let functions = &self.module.functions;
        let after = functions.partition_point(|(start, _)| *start <= entry);
        let end = functions.get(after).map(|(start, _)| *start);
        entry..end.unwrap_or(self.module.code.len() as u32).max(entry)
    }

    /// Local memory of a thread, stack included.
    #[must_use]
    pub fn local_bytes(&self) -> u32 {
        let kernel = self.kernel();
        let stack = if kernel.needs_stack { self.stack } else { 0 };
        kernel
            .local_bytes
            .saturating_add(stack)
            .next_multiple_of(16)
    }

    /// Shared memory of a block: the system's part, static and dynamic.
    #[must_use]
    pub fn shared(&self) -> u32 {
        let kernel = self.kernel();
        let fixed = (kernel.shared_reserved + kernel.shared_bytes).next_multiple_of(16);
        fixed + self.config.dynamic_shared
    }

    /// The same without the system's part, which the code's addresses may include.
    #[must_use]
    pub fn own_shared(&self) -> u32 {
        self.shared() - self.kernel().shared_reserved
    }

    /// Blocks of a cluster by axis; one where nobody asked for clusters.
    #[must_use]
    pub fn cluster(&self) -> [u32; 3] {
        self.cluster.or(self.kernel().cluster).unwrap_or([1; 3])
    }

    /// Whether somebody asked for clusters, even of one block.
    #[must_use]
    pub fn has_explicit_cluster(&self) -> bool {
        self.cluster.or(self.kernel().cluster).is_some()
    }

    /// Blocks of a cluster.
    #[must_use]
    pub fn cluster_blocks(&self) -> u32 {
        let [x, y, z] = self.cluster();
        x.saturating_mul(y).saturating_mul(z)
    }

    /// The number in the grid of a block of a cluster, where clusters are numbered along x, then y, then z, and
    /// so are the blocks of each.
    #[must_use]
    pub fn block_of_cluster(&self, cluster: u64, rank: u32) -> u64 {
        let size = self.cluster().map(u64::from);
        let grid = self.config.grid.map(u64::from);
        let clusters = [0, 1].map(|axis| (grid[axis] / size[axis]).max(1));
        let rank = u64::from(rank);
        let place = [
            cluster % clusters[0] * size[0] + rank % size[0],
            cluster / clusters[0] % clusters[1] * size[1] + rank / size[0] % size[1],
            cluster / (clusters[0] * clusters[1]) * size[2] + rank / (size[0] * size[1]),
        ];
        place[0] + grid[0] * (place[1] + grid[1] * place[2])
    }

    /// The number of a block in the grid.
    #[must_use]
    pub fn block_number(&self, block: [u32; 3]) -> u64 {
        let [x, y, _] = self.config.grid.map(u64::from);
        let block = block.map(u64::from);
        block[0] + x * (block[1] + y * block[2])
    }

    /// `%envreg0` to `%envreg3`: a cooperative launch finds its work space there.
    #[must_use]
    pub fn environment(&self) -> [u32; 4] {
        let work_space = self.cooperative.unwrap_or(0);
        [0, (work_space >> 32) as u32, work_space as u32, 0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(kernel: Kernel) -> Launch {
        let module = Arc::new(Module {
            kernels: vec![kernel],
            ..Module::default()
        });
        Launch::new(&module, "k", [2, 1, 1], [64, 1, 1]).unwrap()
    }

    fn kernel() -> Kernel {
        Kernel {
            name: "k".into(),
            ..Kernel::default()
        }
    }

    #[test]
    fn shared_memory_is_the_systems_part_static_and_dynamic() {
        let mut launch = launch(Kernel {
            shared_reserved: 1024,
            shared_bytes: 20,
            ..kernel()
        });
        launch.config.dynamic_shared = 100;
        assert_eq!((launch.shared(), launch.own_shared()), (1156, 132));
    }

    #[test]
    fn the_stack_counts_where_functions_are_called() {
        let plain = Kernel {
            local_bytes: 8,
            ..kernel()
        };
        let calls = Kernel {
            needs_stack: true,
            ..plain.clone()
        };
        assert_eq!(launch(plain).local_bytes(), 16);
        assert_eq!(launch(calls).local_bytes(), 8 + 1024 + 8);
    }

    #[test]
    fn blocks_of_clusters_are_numbered_along_each_axis() {
        let mut launch = launch(kernel());
        launch.config.grid = [4, 4, 2];
        assert_eq!(launch.block_of_cluster(7, 0), 7);
        launch.cluster = Some([2, 2, 1]);
        let blocks = |cluster| [0, 1, 2, 3].map(|rank| launch.block_of_cluster(cluster, rank));
        assert_eq!(blocks(0), [0, 1, 4, 5]);
        assert_eq!(blocks(1), [2, 3, 6, 7]);
        assert_eq!(blocks(6), [24, 25, 28, 29]);
        assert_eq!(launch.cluster_blocks(), 4);
    }

    #[test]
    fn a_cooperative_launch_finds_its_work_space() {
        let mut launch = launch(kernel());
        assert_eq!(launch.environment(), [0; 4]);
        launch.cooperative = Some(0x12_3456_789a);
        assert_eq!(launch.environment(), [0, 0x12, 0x3456_789a, 0]);
    }
}
