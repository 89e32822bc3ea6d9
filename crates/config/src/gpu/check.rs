//! Refuses what no model can take: bounds of single keys, then what is impossible together.

use super::GpuConfig;
use super::device::one_nanosecond;
use crate::ConfigError;

impl GpuConfig {
    /// Refuses values that are each fine and impossible together, or that no model can take.
    ///
    /// # Errors
    /// The first key that is wrong, with its value and the reason.
    pub fn check(&self) -> Result<(), ConfigError> {
        let limits = [
            self.device.limits(),
            self.sm.limits(),
            self.l1.limits(),
            self.translation.limits(),
            self.l2.limits(),
            self.interconnect.limits(),
            self.dram.limits(),
            self.dispatch.limits(),
            self.host.limits(),
            self.copy.limits(),
        ];
        limits
            .iter()
            .flatten()
            .try_for_each(|limit| limit.check())?;
        self.check_host_machine()?;
        self.check_first_sms()?;
        self.uvm.check()?;
        self.check_fetch()?;
        self.check_shared_memory()?;
        self.check_caches()?;
        self.check_device()
    }

    fn check_host_machine(&self) -> Result<(), ConfigError> {
        let known = ["none", "machine"];
        let kind = self.host.machine.kind.as_str();
        if known.contains(&kind) {
            return Ok(());
        }
        Err(ConfigError::unknown_policy(
            "host machine",
            kind,
            known.into_iter(),
        ))
    }

    fn check_first_sms(&self) -> Result<(), ConfigError> {
        let mut seen = std::collections::BTreeSet::new();
        match self.dispatch.first_sms.iter().find(|sm| !seen.insert(**sm)) {
            None => Ok(()),
            Some(sm) => Err(ConfigError::impossible(
                "dispatch.first-sms",
                sm,
                "it is named twice",
            )),
        }
    }

    /// A line that was asked for must not make room for those that are prefetched behind it.
    fn check_fetch(&self) -> Result<(), ConfigError> {
        let front_end = &self.sm.front_end;
        let lines = front_end.l0.0 / front_end.line.0;
        let ahead = u64::from(front_end.stream_buffer_lines);
        if lines == 0 || lines > ahead {
            return Ok(());
        }
        Err(ConfigError::impossible(
            "sm.front-end.l0",
            front_end.l0,
            format!(
                "its {lines} lines must be more than `sm.front-end.stream-buffer-lines` = {ahead}"
            ),
        ))
    }

    fn check_shared_memory(&self) -> Result<(), ConfigError> {
        let sm = &self.sm;
        if !sm.warps.is_multiple_of(sm.sub_cores) {
            return Err(ConfigError::impossible(
                "sm.warps",
                sm.warps,
                format!("it must be a multiple of `sm.sub-cores` = {}", sm.sub_cores),
            ));
        }
        if !sm.shared_carveouts.is_sorted() || sm.shared_carveouts.is_empty() {
            return Err(ConfigError::impossible(
                "sm.shared-carveouts",
                format!("{:?}", sm.shared_carveouts),
                "it must name at least one size, ascending",
            ));
        }
        let most = sm.shared_carveouts.last().map_or(0, |size| size.0);
        if sm.shared_per_block_optin.0 + sm.shared_reserved.0 > most {
            return Err(ConfigError::impossible(
                "sm.shared-per-block-optin",
                sm.shared_per_block_optin.0,
                format!("with `sm.shared-reserved` it exceeds the largest carve-out, {most} bytes"),
            ));
        }
        if most > sm.unified_data_cache.0 {
            return Err(ConfigError::impossible(
                "sm.unified-data-cache",
                sm.unified_data_cache.0,
                format!("the largest carve-out is {most} bytes"),
            ));
        }
        if sm.shared_per_block.0 > sm.shared_per_block_optin.0 {
            return Err(ConfigError::impossible(
                "sm.shared-per-block",
                sm.shared_per_block.0,
                "it exceeds `sm.shared-per-block-optin`",
            ));
        }
        Ok(())
    }

    fn check_caches(&self) -> Result<(), ConfigError> {
        for (key, found, modelled) in [
            ("l1.line", self.l1.line.0, 128),
            ("l2.line", self.l2.line.0, 128),
            ("l1.sector", self.l1.sector.0, 32),
            ("l2.sector", self.l2.sector.0, 32),
        ] {
            if found != modelled {
                return Err(ConfigError::impossible(
                    key,
                    found,
                    format!("it must be {modelled}: caches of other shapes are not modelled"),
                ));
            }
        }
        let per_slice = u64::from(self.l2.slices) * u64::from(self.l2.ways) * self.l2.line.0;
        if !self.l2.capacity.0.is_multiple_of(per_slice) {
            return Err(ConfigError::impossible(
                "l2.capacity",
                self.l2.capacity.0,
                format!("it is not a multiple of slices x ways x line = {per_slice} bytes"),
            ));
        }
        if !self.l2.slices.is_multiple_of(self.dram.channels)
            && !self.dram.channels.is_multiple_of(self.l2.slices)
        {
            return Err(ConfigError::impossible(
                "dram.channels",
                self.dram.channels,
                format!(
                    "{} slices do not divide evenly between them",
                    self.l2.slices
                ),
            ));
        }
        Ok(())
    }

    fn check_device(&self) -> Result<(), ConfigError> {
        let device = &self.device;
        if let Some(tpcs) = device.gpc_tpcs.iter().find(|tpcs| **tpcs > 2048) {
            return Err(ConfigError::impossible(
                "device.gpc-tpcs",
                tpcs,
                "at most 2048 can be simulated",
            ));
        }
        let step = device.globaltimer_resolution.0;
        let nanosecond = one_nanosecond().0;
        if step == 0 || !step.is_multiple_of(nanosecond) || step > 1_000_000 * nanosecond {
            return Err(ConfigError::impossible(
                "device.globaltimer-resolution",
                device.globaltimer_resolution,
                "it must be whole nanoseconds, at least 1 ns and at most 1 ms",
            ));
        }
        if device.reserved_memory.0 >= device.memory.0 {
            return Err(ConfigError::impossible(
                "device.reserved-memory",
                device.reserved_memory.0,
                "it leaves no memory to allocate",
            ));
        }
        Ok(())
    }
}
