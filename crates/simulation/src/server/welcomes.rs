//! What clients are offered: the GPUs of their node.

use lockstep_protocol::{DeviceDescription, Hello, Welcome, layout};
use lockstep_runtime::{DRIVER_VERSION, Device, Runtime};

/// A welcome for each node.
pub struct Welcomes(Vec<Welcome>);

/// What a client of a node is told.
pub fn welcome(all: &[DeviceDescription], node: std::ops::Range<u32>) -> Welcome {
    let devices = node.start as usize..node.end as usize;
    Welcome {
        window_base: layout::WINDOW_BASE,
        window_size: layout::window_size(all.len() as u32),
        driver_version: DRIVER_VERSION,
        first_device: node.start,
        devices: all.get(devices).unwrap_or_default().to_vec(),
    }
}

impl Welcomes {
    /// Those of a run.
    pub fn of<D: Device>(runtime: &Runtime<D>) -> Self {
        let all = runtime.descriptions();
        let mut welcomes = Vec::new();
        let mut first = 0;
        while first < all.len() as u32 {
            let node = runtime.device().neighbours(first);
            first = node.end;
            welcomes.push(welcome(&all, node));
        }
        Self(welcomes)
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.0.len()
    }

    /// What a program is called in sentences: its name, and its node if there are several.
    pub fn name_of(&self, hello: &Hello) -> String {
        match (&hello.node, self.nodes()) {
            (Ok(node), 2..) => format!("{}, node {node}", hello.name),
            _ => hello.name.clone(),
        }
    }

    /// What a client is told, or why it is not let in.
    pub fn for_client(&self, hello: &Hello) -> Result<&Welcome, String> {
        let (process, name) = (hello.process, &hello.name);
        let node = hello.node.as_ref();
        let node = node.map_err(|reason| format!("process {process} ({name}): {reason}"))?;
        self.0.get(*node as usize).ok_or_else(|| {
            format!(
                "process {process} ({name}) is on node {node}, and the run has {}, numbered from 0",
                self.nodes()
            )
        })
    }
}
