//! The host as a machine: cores, memory, a mesh between them and two links to the GPU.
//!
//! Only where a GPU file asks for it (`host.machine.kind = "machine"`); otherwise calls and copies
//! cost what `host` and `copy` say. Data move page by page through stages that each take one page
//! at a time: cores ask for it, memory reads or writes it, the mesh and the link carry it. Pages
//! of a transfer follow each other through the stages, and transfers share them in the order in
//! which they begin. A command is one request over the mesh and the link for commands; the answer
//! to a wait comes back the same way.
//!
//! Start reading at [`HostMachine::transfer`].

use lockstep_config::HostMachineConfig;
use lockstep_units::{Bytes, Cycles, Duration, Time};

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the host to the GPU.
    ToDevice,
    /// From the GPU to the host.
    ToHost,
}

impl Direction {
    /// The direction in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::ToDevice => "for the device",
            Self::ToHost => "for the host",
        }
    }
}

/// One stage: what it adds to the way, and how long it is busy with a page.
#[derive(Clone, Copy, Debug)]
struct Stage {
    which: usize,
    latency: Duration,
    busy: Duration,
}

/// Stages that transfers share; ways in and out of the mesh and of the link are apart.
const STAGES: usize = 6;
const CORES: usize = 0;
const MEMORY: usize = 1;
const MESH: [usize; 2] = [2, 3];
const LINK: [usize; 2] = [4, 5];

/// The host as a machine.
#[derive(Clone, Debug)]
pub struct HostMachine {
    config: HostMachineConfig,
    /// When each stage has passed on what came before.
    free: [Time; STAGES],
}

impl HostMachine {
    /// The machine that a GPU file describes, if it does.
    pub fn new(config: &HostMachineConfig) -> Option<Self> {
        config.is_modelled().then(|| Self {
            config: config.clone(),
            free: [Time::ZERO; STAGES],
        })
    }

    /// From a call to the GPU knowing of it, or from the end of work to the host knowing of that.
    pub fn command(&self) -> Duration {
        let config = &self.config;
        config.clock.duration(Cycles(1)) + config.mesh_latency + config.command_latency
    }

    /// Moves data from `at` on; says when the last byte is there.
    pub fn transfer(&mut self, at: Time, bytes: u64, direction: Direction) -> Time {
        let page = self.config.page.0.max(1);
        let whole = self.stages(page, direction);
        let mut end = at;
        for _ in 0..bytes / page {
            end = end.max(self.pass(at, &whole));
        }
        if !bytes.is_multiple_of(page) {
            let rest = self.stages(bytes % page, direction);
            end = end.max(self.pass(at, &rest));
        }
        end
    }

    /// Sends one page through the stages, each when the one before has it and it is free.
    fn pass(&mut self, at: Time, stages: &[Stage]) -> Time {
        let mut now = at;
        for stage in stages {
            let free = &mut self.free[stage.which];
            let begin = now.max(*free);
            *free = begin + stage.busy;
            now = *free + stage.latency;
        }
        now
    }

    /// The way of so many bytes.
    fn stages(&self, bytes: u64, direction: Direction) -> [Stage; 4] {
        let config = &self.config;
        let way = direction as usize;
        let stage = |which, latency, busy| Stage {
            which,
            latency,
            busy,
        };
        let a_cycle = u64::from(config.requests_per_cycle) * u64::from(config.cores);
        let requests = bytes.div_ceil(config.request.0.max(1));
        let asking = config
            .clock
            .duration(Cycles(requests.div_ceil(a_cycle.max(1))));
        let cores = stage(CORES, Duration::ZERO, asking);
        let memory_rate = config.ddr_bytes_per_cycle.at(config.ddr_clock);
        let memory = stage(MEMORY, Duration::ZERO, memory_rate.time_for(Bytes(bytes)));
        // What the host reads leaves its mesh, what it writes comes in.
        let ports = [config.mesh_output_ports, config.mesh_input_ports][way];
        let mesh_rate = config.mesh_bytes_per_cycle.at(config.mesh_clock);
        let share = Bytes(bytes.div_ceil(u64::from(ports.max(1))));
        let mesh = stage(MESH[way], config.mesh_latency, mesh_rate.time_for(share));
        let busy = config.link.time_for(Bytes(bytes));
        let link = stage(LINK[way], config.data_latency, busy);
        match direction {
            Direction::ToDevice => [cores, memory, mesh, link],
            Direction::ToHost => [cores, link, mesh, memory],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(settings: &[&str]) -> HostMachine {
        let mut all = vec!["host.machine.kind=machine"];
        all.extend(settings);
        let config = lockstep_config::load(Some("h200"), &all).unwrap();
        HostMachine::new(&config.host.machine).unwrap()
    }

    /// Round numbers: a core asks for 64 bytes a nanosecond, memory moves 16 GB/s, the mesh
    /// 32 GB/s after 1 ns, the link 8 GB/s after 100 ns.
    fn round() -> HostMachine {
        machine(&[
            "host.machine.clock=1 GHz",
            "host.machine.requests-per-cycle=1",
            "host.machine.ddr-clock=2 GHz",
            "host.machine.mesh-clock=1 GHz",
            "host.machine.mesh-bytes-per-cycle=32 B/cycle",
            "host.machine.mesh-latency=1 ns",
            "host.machine.data-latency=100 ns",
            "host.machine.command-latency=50 ns",
            "host.machine.link=8 GB/s",
        ])
    }

    fn nanoseconds(time: Time) -> u64 {
        time.nanoseconds()
    }

    #[test]
    fn there_is_none_unless_a_gpu_file_asks() {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        assert!(HostMachine::new(&config.host.machine).is_none());
    }

    #[test]
    fn a_page_takes_every_stage_and_further_pages_the_slowest() {
        // 4096 bytes: 64 ns asking, 256 memory, 128 mesh, 512 link; 1 and 100 on the way.
        let mut host = round();
        let one = host.transfer(Time::ZERO, 4096, Direction::ToDevice);
        assert_eq!(nanoseconds(one), 64 + 256 + 128 + 1 + 512 + 100);
        let mut host = round();
        let ten = host.transfer(Time::ZERO, 40_960, Direction::ToDevice);
        assert_eq!(nanoseconds(ten), nanoseconds(one) + 9 * 512);
        // The other way: asking, link, mesh, memory.
        let mut host = round();
        let back = host.transfer(Time::ZERO, 4096, Direction::ToHost);
        assert_eq!(nanoseconds(back), nanoseconds(one));
        let mut host = round();
        let back = host.transfer(Time::ZERO, 40_960, Direction::ToHost);
        assert_eq!(nanoseconds(back), nanoseconds(one) + 9 * 512);
        // Half a page.
        let mut host = round();
        let half = host.transfer(Time::ZERO, 2048, Direction::ToDevice);
        assert_eq!(nanoseconds(half), 32 + 128 + 64 + 1 + 256 + 100);
        assert_eq!(host.transfer(Time(7), 0, Direction::ToDevice), Time(7));
    }

    #[test]
    fn transfers_share_the_stages() {
        let mut host = round();
        let alone = host.transfer(Time::ZERO, 40_960, Direction::ToDevice);
        let second = host.transfer(Time::ZERO, 40_960, Direction::ToDevice);
        assert_eq!(nanoseconds(second), nanoseconds(alone) + 10 * 512);
        // The other direction has a link of its own, and waits for cores and memory alone.
        let mut host = round();
        host.transfer(Time::ZERO, 40_960, Direction::ToDevice);
        let other = host.transfer(Time::ZERO, 40_960, Direction::ToHost);
        assert!(nanoseconds(other) < nanoseconds(second), "{other}");
    }

    #[test]
    fn more_cores_ports_and_requests_help_where_they_are_the_bound() {
        let slow = |setting: &str| {
            let mut host = machine(&["host.machine.clock=100 MHz", setting]);
            host.transfer(Time::ZERO, 1 << 20, Direction::ToDevice)
        };
        let base = slow("host.machine.cores=1");
        assert!(slow("host.machine.cores=2") < base);
        assert!(slow("host.machine.requests-per-cycle=6") < base);
        assert_eq!(slow("host.machine.mesh-input-ports=4"), base);
    }

    #[test]
    fn a_command_takes_its_link() {
        // A core cycle, the mesh, the link for commands.
        let command = round().command();
        assert_eq!(
            Time::ZERO + command,
            Time::ZERO + Duration::nanoseconds(1 + 1 + 50)
        );
        // The seed's parameters: 23,840 ps, 300 ps and a cycle at 2,660 MHz.
        let listed = machine(&[]).command();
        assert_eq!(listed.0 / 1000, 23_840 + 300 + 375);
    }

    #[test]
    fn the_links_of_the_seed_bound_large_copies() {
        let mut host = machine(&[]);
        let end = host.transfer(Time::ZERO, 64 << 20, Direction::ToDevice);
        // 64 MiB at 16 GB/s.
        let bound = 67_108_864 / 16;
        assert!((bound..bound + 2000).contains(&nanoseconds(end)), "{end}");
    }
}
