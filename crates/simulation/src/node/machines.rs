//! The GPUs of a run by their numbers. Those of a single node are there from the beginning; those of a cluster are
//! built when the first context on them is made, since most of many may never have one. A GPU takes some 40 MB.

use crate::description::Description;
use crate::machine::{Backing, Machine, MachineError, SharedSegment};
use lockstep_runtime::Device;
use std::ops::{Index, IndexMut};

/// GPUs, each built or not.
pub struct Machines {
    slots: Vec<Option<Machine>>,
    /// What others are built from.
    description: Description,
    backing: Backing,
    /// Where they publish, if they do.
    segment: Option<SharedSegment>,
}

impl Machines {
    /// Those that are there from the beginning. The first always is: what it cannot be, no other could.
    ///
    /// # Errors
    /// A GPU cannot be built.
    pub fn new(description: &Description, backing: Backing) -> Result<Self, MachineError> {
        let all = description.all_gpus();
        let mut machines = Self {
            slots: (0..all).map(|_| None).collect(),
            description: description.clone(),
            backing,
            segment: None,
        };
        let first = if description.nodes > 1 { 1 } else { all };
        for ordinal in 0..first {
            machines.slots[ordinal as usize] = Some(machines.build(ordinal)?);
        }
        Ok(machines)
    }

    fn build(&self, ordinal: u32) -> Result<Machine, MachineError> {
        let mut machine = Machine::over(&self.description, &self.backing, ordinal)?;
        machine.set_heap(ordinal, lockstep_runtime::DEFAULT_HEAP);
        if let Some(segment) = &self.segment {
            machine.publish(segment, &self.description);
        }
        Ok(machine)
    }

    /// Builds a GPU; false if it is there already.
    pub fn open(&mut self, gpu: u32) -> bool {
        let place = gpu as usize;
        if self.slots[place].is_some() {
            return false;
        }
        let built = self.build(gpu);
        let machine =
            built.unwrap_or_else(|error| panic!("a GPU like the first is built: {error}"));
        self.slots[place] = Some(machine);
        true
    }

    /// Has those that are there, and those that come, tell readers of shared memory what happens.
    pub fn publish(&mut self, segment: &SharedSegment, description: &Description) {
        self.segment = Some(segment.clone());
        for machine in self.iter_mut() {
            machine.publish(segment, description);
        }
    }

    /// How many there are, built or not.
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// The GPU of a run that has one.
    pub fn only(&self) -> Option<&Machine> {
        match &self.slots[..] {
            [only] => only.as_ref(),
            _ => None,
        }
    }

    /// The same, to change it.
    pub fn only_mut(&mut self) -> Option<&mut Machine> {
        match &mut self.slots[..] {
            [only] => only.as_mut(),
            _ => None,
        }
    }

    /// A GPU, if it was built.
    pub fn get(&self, gpu: usize) -> Option<&Machine> {
        self.slots.get(gpu)?.as_ref()
    }

    /// All, with nothing for those that were never built.
    pub fn slots(&self) -> impl Iterator<Item = Option<&Machine>> {
        self.slots.iter().map(Option::as_ref)
    }

    /// Those that were built, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Machine> {
        self.slots.iter().flatten()
    }

    /// The same, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Machine> {
        self.slots.iter_mut().flatten()
    }

    /// Those that were built, with their numbers.
    pub fn numbered_mut(&mut self) -> impl Iterator<Item = (u32, &mut Machine)> {
        let numbered = (0..).zip(&mut self.slots);
        numbered.filter_map(|(gpu, slot)| Some((gpu, slot.as_mut()?)))
    }
}

impl Index<usize> for Machines {
    type Output = Machine;

    fn index(&self, gpu: usize) -> &Machine {
        let machine = self.slots[gpu].as_ref();
        machine.expect("a GPU has a context before it has anything to do")
    }
}

impl IndexMut<usize> for Machines {
    fn index_mut(&mut self, gpu: usize) -> &mut Machine {
        let machine = self.slots[gpu].as_mut();
        machine.expect("a GPU has a context before it has anything to do")
    }
}
