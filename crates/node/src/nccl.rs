//! The links of a node as NCCL reads them (`NCCL_TOPO_FILE`).
//!
//! Without such a file NCCL looks for PCI devices under /sys, where those of the host are and no
//! simulated one; for the kind of what is at the other end of an NVLink too. What the file says of the
//! processor holds on every host, so that NCCL decides alike on all of them.

use crate::config::Kind;
use crate::nvlink::{NvLinkPort, SWITCH_BUS, pci_bus};
use crate::topology::Topology;
use lockstep_units::Bandwidth;
use std::fmt::Write;

/// PCI classes: what NCCL tells GPUs, PCIe switches and NVSwitches by.
const GPU_CLASS: &str = "0x030200";
const PCI_SWITCH_CLASS: &str = "0x060400";
const NVSWITCH_CLASS: &str = "0x068000";

/// The processor that such nodes are built with: family 6, model 143 (Xeon of the fourth generation).
/// No affinity: simulated GPUs are as near to every core of the host.
const PROCESSOR: &str = "<cpu numaid=\"0\" affinity=\"\" arch=\"x86_64\" vendor=\"GenuineIntel\" \
                         familyid=\"6\" modelid=\"143\">";

/// What 16 lanes of PCIe carry on the wire, by what a lane does, slowest first.
const PCIE_GENERATIONS: &[(u64, &str)] = &[
    (4_000_000_000, "2.5 GT/s PCIe"),
    (8_000_000_000, "5.0 GT/s PCIe"),
    (15_760_000_000, "8.0 GT/s PCIe"),
    (31_510_000_000, "16.0 GT/s PCIe"),
    (63_020_000_000, "32.0 GT/s PCIe"),
    (121_000_000_000, "64.0 GT/s PCIe"),
];

/// The slowest generation of PCIe that carries so much.
fn pcie_generation(bandwidth: Bandwidth) -> &'static str {
    let enough = |(most, _): &&(u64, &str)| bandwidth.get() <= *most;
    let found = PCIE_GENERATIONS.iter().find(enough);
    found.or(PCIE_GENERATIONS.last()).map_or("", |row| row.1)
}

fn bus_id(bus: u32) -> String {
    format!("0000:{bus:02x}:00.0")
}

impl Topology {
    /// The topology file of NCCL, on any of the nodes, for GPUs of a compute capability with a link to the host.
    pub fn nccl_xml(&self, seen: impl Fn(u32) -> (u32, u32, Bandwidth)) -> String {
        let behind_switch = self.kind() == Kind::Pcie && self.has_switch();
        let device = |bus, class, host_link| {
            let host_link = match self.kind() {
                Kind::Pcie => self.bandwidth(),
                Kind::Nvlink => host_link,
            };
            let (bus, speed) = (bus_id(bus), pcie_generation(host_link));
            format!(
                "<pci busid=\"{bus}\" class=\"{class}\" link_speed=\"{speed}\" link_width=\"16\">"
            )
        };
        let mut text = format!("<system version=\"1\">\n  {PROCESSOR}\n");
        if behind_switch {
            let device = device(SWITCH_BUS, PCI_SWITCH_CLASS, self.bandwidth());
            let _ = writeln!(text, "    {device}");
        }
        // All nodes are alike.
        for gpu in self.neighbours(0) {
            let (major, minor, host_link) = seen(gpu);
            let device = device(pci_bus(gpu), GPU_CLASS, host_link);
            let _ = writeln!(text, "    {device}");
            let _ = writeln!(
                text,
                "      <gpu dev=\"{gpu}\" sm=\"{}\">",
                major * 10 + minor
            );
            let ports = self.nvlinks(gpu);
            for together in ports.chunk_by(|one, next| one.peer == next.peer) {
                text.push_str(&nvlink(together));
            }
            text.push_str("      </gpu>\n    </pci>\n");
        }
        if behind_switch {
            text.push_str("    </pci>\n");
        }
        text.push_str("  </cpu>\n</system>\n");
        text
    }
}

/// NVLinks with one other end.
fn nvlink(together: &[NvLinkPort]) -> String {
    let (bus, class) = match together[0].peer {
        Some(peer) => (pci_bus(peer), GPU_CLASS),
        None => (SWITCH_BUS, NVSWITCH_CLASS),
    };
    let (target, count) = (bus_id(bus), together.len());
    format!("        <nvlink target=\"{target}\" count=\"{count}\" tclass=\"{class}\"/>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NodeConfig;
    use expect_test::{Expect, expect};

    fn check(node: &str, capability: (u32, u32), expected: Expect) {
        let topology = Topology::new(NodeConfig::load(node).unwrap(), 2).unwrap();
        expected.assert_eq(
            &topology.nccl_xml(|_| (capability.0, capability.1, "55 GB/s".parse().unwrap())),
        );
    }

    #[test]
    fn a_switch_of_nvlinks_is_one_target() {
        check(
            "hgx",
            (9, 0),
            expect![[r#"
            <system version="1">
              <cpu numaid="0" affinity="" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
                <pci busid="0000:01:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
                  <gpu dev="0" sm="90">
                    <nvlink target="0000:c0:00.0" count="18" tclass="0x068000"/>
                  </gpu>
                </pci>
                <pci busid="0000:02:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
                  <gpu dev="1" sm="90">
                    <nvlink target="0000:c0:00.0" count="18" tclass="0x068000"/>
                  </gpu>
                </pci>
              </cpu>
            </system>
        "#]],
        );
    }

    #[test]
    fn a_mesh_names_the_gpu_at_the_other_end() {
        check(
            "nvlink-mesh",
            (8, 0),
            expect![[r#"
            <system version="1">
              <cpu numaid="0" affinity="" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
                <pci busid="0000:01:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
                  <gpu dev="0" sm="80">
                    <nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>
                  </gpu>
                </pci>
                <pci busid="0000:02:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
                  <gpu dev="1" sm="80">
                    <nvlink target="0000:01:00.0" count="4" tclass="0x030200"/>
                  </gpu>
                </pci>
              </cpu>
            </system>
        "#]],
        );
    }

    #[test]
    fn gpus_behind_a_pcie_switch_have_no_nvlink() {
        check(
            "pcie",
            (8, 6),
            expect![[r#"
            <system version="1">
              <cpu numaid="0" affinity="" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
                <pci busid="0000:c0:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
                <pci busid="0000:01:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
                  <gpu dev="0" sm="86">
                  </gpu>
                </pci>
                <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
                  <gpu dev="1" sm="86">
                  </gpu>
                </pci>
                </pci>
              </cpu>
            </system>
        "#]],
        );
    }
}
