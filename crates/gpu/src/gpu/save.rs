//! A GPU as it is saved between epochs.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use lockstep_engine::{LoadError, Reader, Writer};
use lockstep_isa::device_runtime::DeviceRuntime;
use lockstep_isa::lanes::ConstantBanks;
use lockstep_isa::{Launch, Module};
use lockstep_stats::Digest;

use super::Gpu;
use crate::error::GpuError;
use crate::launch::{LaunchContext, LaunchId, LaunchedBy};

impl Gpu {
    /// Writes everything: time, parts, messages, launches, and the pages that hold something.
    pub fn save(&mut self) -> Vec<u8> {
        self.saved(true)
    }

    /// The same without the pages, for those who keep them elsewhere. [`Gpu::load`] takes it; what memory
    /// held has to be there again before anything runs.
    pub fn save_without_pages(&mut self) -> Vec<u8> {
        self.saved(false)
    }

    fn saved(&mut self, with_pages: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.write(&self.next_launch);
        writer.write(&self.records);
        writer.write(&self.counted);
        writer.write(&self.brought);
        writer.write(&self.managed_changes);
        let launches = self.launches.all();
        writer.write(&(launches.len() as u64));
        for context in launches {
            save_launch(&context, &mut writer);
        }
        let known = self.contents.ranges();
        let ranges: Vec<(Range<u64>, bool)> = known
            .iter()
            .map(|range| (range.clone(), known.find_read_only(range.start).is_some()))
            .collect();
        writer.write(&ranges);
        let aliases: Vec<(Range<u64>, u64)> = self.contents.aliases().iter().cloned().collect();
        writer.write(&aliases);
        let mut pages = 0u64;
        if with_pages {
            self.contents.each_page(|_, _| pages += 1);
        }
        writer.write(&pages);
        if with_pages {
            self.contents.each_page(|address, page| {
                writer.write(&address);
                writer.write_bytes(page);
            });
        }
        self.engine.save(&mut writer);
        let seal = seal(&bytes);
        bytes.extend_from_slice(&seal);
        bytes
    }

    /// Takes on what was saved by a GPU of the same configuration and mode. `module` finds the
    /// module of a launch by its `module_id`. The contents must be as they were made: nothing
    /// valid, nothing written.
    ///
    /// # Errors
    /// If the bytes were changed since, were saved for another machine or do not decode, or a module is
    /// missing.
    pub fn load(
        &mut self,
        bytes: &[u8],
        module: &dyn Fn(u64) -> Option<Arc<Module>>,
    ) -> Result<(), GpuError> {
        // Parts trust each other's state, so bytes that nobody saved must not come to them.
        let (bytes, found) = bytes.split_at(bytes.len().saturating_sub(SEAL));
        if found != seal(bytes) {
            return Err(GpuError::Load(LoadError::Malformed {
                what: "bytes that are not as they were saved",
            }));
        }
        let mut reader = Reader::new(bytes);
        self.next_launch = reader.read()?;
        self.records = reader.read()?;
        self.counted = reader.read()?;
        self.brought = reader.read()?;
        self.managed_changes = reader.read()?;
        self.launches.clear();
        self.failed = None;
        for _ in 0..reader.read::<u64>()? {
            let mut context = load_launch(&mut reader, module)?;
            context.verified = self.verify(&mut context.launch);
            context.issue_table = self.issue_table_of(&context.launch.module);
            context.l1_ways = self.l1_ways(&context.launch);
            self.launches.insert(Arc::new(context));
        }
        let malformed = |what| GpuError::Load(LoadError::Malformed { what });
        for (range, read_only) in reader.read::<Vec<(Range<u64>, bool)>>()? {
            let start = range.start;
            self.contents
                .map(range)
                .map_err(|_| malformed("allocations that do not fit the contents"))?;
            self.contents.set_read_only(start, read_only);
        }
        for (range, to) in reader.read::<Vec<(Range<u64>, u64)>>()? {
            if !self.contents.alias(range, to) {
                return Err(malformed("addresses of a program that name two places"));
            }
        }
        let window = self.contents.window();
        for _ in 0..reader.read::<u64>()? {
            let address: u64 = reader.read()?;
            let page = reader.read_bytes()?;
            let end = address.saturating_add(page.len() as u64);
            if address < window.start || end > window.end {
                return Err(malformed("a page outside the window"));
            }
            self.contents.write(address, page);
        }
        self.engine.load(&mut reader)?;
        self.take_on_outside();
        Ok(())
    }
}

/// Bytes of a seal.
const SEAL: usize = 32;

/// What stands behind saved state: a digest of all of it.
fn seal(bytes: &[u8]) -> [u8; SEAL] {
    *Digest::of_page(bytes).as_bytes()
}

fn save_launch(context: &LaunchContext, writer: &mut Writer<'_>) {
    let launch = &context.launch;
    writer.write(&(
        context.id,
        launch.module_id,
        launch.kernel as u64,
        launch.queue,
        launch.priority,
    ));
    writer.write(&(
        launch.config,
        launch.carveout,
        launch.stack,
        launch.cooperative,
    ));
    writer.write(&(launch.cluster, launch.programmatic, launch.of_graph));
    writer.write(&(context.launched_by, launch.device_runtime.as_deref()));
    writer.write(&*launch.textures);
    writer.write(&(&launch.arguments, &launch.constants, launch.at));
    writer.write(&context.constants.get().map(|constants| &constants.banks));
}

fn load_launch(
    reader: &mut Reader<'_>,
    module: &dyn Fn(u64) -> Option<Arc<Module>>,
) -> Result<LaunchContext, GpuError> {
    let (id, module_id, kernel, queue, priority): (LaunchId, u64, u64, u64, i32) = reader.read()?;
    let (config, carveout, stack, cooperative) = reader.read()?;
    let (cluster, programmatic, of_graph) = reader.read()?;
    let (launched_by, device_runtime): (Option<LaunchedBy>, Option<DeviceRuntime>) =
        reader.read()?;
    let textures = Arc::new(reader.read()?);
    let (arguments, constants, at) = reader.read()?;
    let banks: Option<Vec<Vec<u8>>> = reader.read()?;
    let found = module(module_id).filter(|module| (kernel as usize) < module.kernels.len());
    let Some(module) = found else {
        return Err(GpuError::Load(LoadError::Malformed {
            what: "a launch of a module that is not there",
        }));
    };
    Ok(LaunchContext {
        id,
        module: module.clone(),
        launched_by,
        launch: Launch {
            module,
            module_id,
            kernel: kernel as usize,
            config,
            carveout,
            stack,
            arguments,
            queue,
            priority,
            cluster,
            programmatic,
            of_graph,
            cooperative,
            constants,
            textures,
            device_runtime: device_runtime.map(Arc::new),
            at,
        },
        constants: banks.map_or_else(OnceLock::new, |banks| {
            OnceLock::from(ConstantBanks { banks })
        }),
        issue_table: Arc::default(),
        l1_ways: 0,
        verified: Arc::default(),
    })
}
