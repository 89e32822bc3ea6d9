//! Memory of the test machine.

use std::collections::BTreeMap;

use lockstep_isa::{
    Instruction, Kernel, Lanes, MemoryOperation,
    lanes::{ConstantBanks, ScratchRegister},
    memory::{
        Action, AtomicOperation, AtomicType, BYTES_BY_ADDRESS, Element, Space, classify_generic,
    },
    operand::PredicateRegister,
    semantics::atomic,
    warp_register::{LANES, lanes_of},
};

/// Bytes by space; global memory is a few buffers.
#[derive(Default)]
pub struct Memory {
    buffers: BTreeMap<u64, Vec<u8>>,
    shared: Vec<u8>,
    /// By thread of the block.
    local: Vec<Vec<u8>>,
    heap: u64,
}

impl Memory {
    /// The block's shared memory.
    pub fn shared(&self) -> &[u8] {
        &self.shared
    }

    /// Adds a buffer of global memory.
    pub fn add(&mut self, address: u64, bytes: Vec<u8>) {
        self.buffers.insert(address, bytes);
    }

    /// A buffer by its address.
    pub fn buffer(&self, address: u64) -> &[u8] {
        &self.buffers[&address]
    }

    pub fn allocate(&mut self, bytes: u64) -> u64 {
        let address = 0x4000_0000 + self.heap;
        self.heap += bytes.next_multiple_of(256) + 256;
        self.add(address, vec![0; bytes as usize]);
        address
    }

    pub fn start_block(&mut self, kernel: &Kernel, dynamic: u32, threads: u32) {
        let shared = kernel.shared_reserved + kernel.shared_bytes + dynamic;
        self.shared = vec![0; shared as usize];
        let local = vec![0; kernel.local_bytes as usize];
        self.local = vec![local; threads as usize];
    }

    fn global(&mut self, address: u64, bytes: usize) -> Result<&mut [u8], String> {
        let outside = || format!("global address {address:#x} is outside every buffer");
        let (start, buffer) = self
            .buffers
            .range_mut(..=address)
            .next_back()
            .ok_or_else(outside)?;
        let at = (address - start) as usize;
        buffer.get_mut(at..at + bytes).ok_or_else(outside)
    }

    pub fn copy_global(&self, address: u64, bytes: &mut [u8]) {
        if let Some((start, buffer)) = self.buffers.range(..=address).next_back() {
            let at = (address - start) as usize;
            if let Some(found) = buffer.get(at..at + bytes.len()) {
                bytes.copy_from_slice(found);
            }
        }
    }

    /// A zero-terminated text.
    pub fn text(&mut self, address: u64) -> Result<String, String> {
        let mut bytes = Vec::new();
        loop {
            let byte = self.global(address + bytes.len() as u64, 1)?[0];
            if byte == 0 {
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            bytes.push(byte);
        }
    }

    fn slice(
        &mut self,
        space: Space,
        address: u64,
        bytes: usize,
        thread: usize,
    ) -> Result<&mut [u8], String> {
        if !address.is_multiple_of(bytes as u64) {
            return Err(format!("address {address:#x} is not a multiple of {bytes}"));
        }
        let (space, address) = match space {
            Space::Generic => classify_generic(address),
            other => (other, address),
        };
        let at = address as usize;
        let outside = || format!("address {address:#x} is outside {space:?} memory");
        match space {
            Space::Global | Space::Generic => self.global(address, bytes),
            Space::Shared => self.shared.get_mut(at..at + bytes).ok_or_else(outside),
            Space::Local => self.local[thread]
                .get_mut(at..at + bytes)
                .ok_or_else(outside),
            Space::Constant { .. } => Err("constant memory is read only".to_owned()),
        }
    }

    fn read(
        &mut self,
        space: Space,
        address: u64,
        bytes: usize,
        thread: usize,
        constants: &ConstantBanks,
    ) -> Result<u128, String> {
        let mut value = [0; 16];
        if let Space::Constant { bank } = space {
            let bank = constants
                .banks
                .get(usize::from(bank))
                .map_or(&[][..], |bank| bank);
            let at = address as usize;
            let found = bank
                .get(at..at + bytes)
                .ok_or_else(|| format!("constant offset {at:#x} is outside its bank"))?;
            value[..bytes].copy_from_slice(found);
        } else {
            value[..bytes].copy_from_slice(self.slice(space, address, bytes, thread)?);
        }
        Ok(u128::from_le_bytes(value))
    }

    /// One access of all executing lanes.
    pub fn access(
        &mut self,
        lanes: &mut Lanes<'_>,
        instruction: &Instruction,
        operation: &MemoryOperation,
        warp: u32,
        constants: &ConstantBanks,
    ) -> Result<(), String> {
        let execute = lanes.execute;
        let addresses = operation.address.evaluate(lanes, 1).lanes;
        let thread = |lane: usize| warp as usize * 32 + lane;
        let bytes = operation.element.bytes() as usize;
        match operation.action {
            Action::Load => {
                for lane in lanes_of(execute) {
                    for element in 0..usize::from(operation.elements) {
                        let address = addresses[lane] + (element * bytes) as u64;
                        let value =
                            self.read(operation.space, address, bytes, thread(lane), constants)?;
                        let value = extend(operation.element, value);
                        if let Some(row) = operation.data[element] {
                            for word in 0..operation.element.words() {
                                lanes.registers[usize::from(row + word)].0[lane] =
                                    (value >> (32 * word)) as u32;
                            }
                        }
                    }
                }
            }
            Action::Store => {
                for lane in lanes_of(execute) {
                    for element in 0..usize::from(operation.elements) {
                        let mut value = 0u128;
                        for word in 0..operation.element.words() {
                            let part = lanes.raw(operation.values[element], word).0[lane];
                            value |= u128::from(part) << (32 * word);
                        }
                        let address = addresses[lane] + (element * bytes) as u64;
                        self.slice(operation.space, address, bytes, thread(lane))?
                            .copy_from_slice(&value.to_le_bytes()[..bytes]);
                    }
                }
            }
            Action::Atomic(function, kind) | Action::Reduce(function, kind) => {
                self.atomic(lanes, instruction, operation, function, kind, thread(0))?;
            }
            Action::LoadMatrix {
                matrices,
                transpose,
            } => {
                for matrix in 0..usize::from(matrices) {
                    let mut half = |row: usize, column: usize| {
                        let address = addresses[8 * matrix + row] + 2 * column as u64;
                        self.read(operation.space, address, 2, 0, constants)
                    };
                    for lane in 0..LANES {
                        let mut word = 0;
                        for index in 0..2 {
                            let (row, column) = (lane / 4, 2 * (lane % 4) + index);
                            let value = if transpose {
                                half(column, row)?
                            } else {
                                half(row, column)?
                            };
                            word |= (value as u32) << (16 * index);
                        }
                        if let Some(row) = operation.data[matrix] {
                            lanes.registers[usize::from(row)].0[lane] = word;
                        }
                    }
                }
            }
            Action::StoreMatrix {
                matrices,
                transpose,
            } => {
                for matrix in 0..usize::from(matrices) {
                    let values = lanes.raw(operation.values[matrix], 0);
                    for lane in 0..LANES {
                        for index in 0..2 {
                            let (row, column) = (lane / 4, 2 * (lane % 4) + index);
                            let (row, column) = if transpose {
                                (column, row)
                            } else {
                                (row, column)
                            };
                            let address = addresses[8 * matrix + row] + 2 * column as u64;
                            let half = (values.0[lane] >> (16 * index)) as u16;
                            self.slice(operation.space, address, 2, 0)?
                                .copy_from_slice(&half.to_le_bytes());
                        }
                    }
                }
            }
            Action::CopyToShared => {
                let places = [0, 2, 3].map(|n| lanes.raw(operation.values[n], 0));
                let limit = lanes.raw(operation.values[1], 0);
                let kept = lanes.predicate(instruction.predicates[0]);
                for lane in lanes_of(execute) {
                    let to = places
                        .iter()
                        .fold(0u32, |sum, row| sum.wrapping_add(row.0[lane]));
                    let mut copied = bytes;
                    let mut from = addresses[lane];
                    if operation.values[1] == BYTES_BY_ADDRESS {
                        let missing = from % bytes as u64;
                        from -= missing;
                        copied -= missing as usize;
                    } else if operation.values[1] != lockstep_isa::Operand::None {
                        copied = copied.min(limit.0[lane] as usize);
                    }
                    if kept >> lane & 1 == 0 {
                        copied = 0;
                    }
                    let mut data = vec![0; bytes];
                    for (index, byte) in data.iter_mut().enumerate().take(copied) {
                        let address = from + index as u64;
                        *byte = self.read(Space::Global, address, 1, 0, constants)? as u8;
                    }
                    self.slice(Space::Shared, u64::from(to), bytes, 0)?
                        .copy_from_slice(&data);
                }
            }
            Action::Prefetch | Action::CacheControl => {}
            // Blocks are alone here, and nothing happens beside them.
            Action::Mbarrier(_)
            | Action::StoreAsync
            | Action::ReduceAsync(..)
            | Action::LoadReduce(..) => {
                return Err(format!("{:?} needs a GPU", operation.action));
            }
        }
        Ok(())
    }

    /// Atomics and reductions, lane by lane. A generic one of machine code says whether it was performed.
    fn atomic(
        &mut self,
        lanes: &mut Lanes<'_>,
        instruction: &Instruction,
        operation: &MemoryOperation,
        function: AtomicOperation,
        kind: AtomicType,
        first_thread: usize,
    ) -> Result<(), String> {
        let addresses = operation.address.evaluate(lanes, 1).lanes;
        let bytes = kind.bytes() as usize;
        let cut = u128::MAX >> (128 - 8 * bytes);
        let says = instruction.predicate_destinations[0];
        let mut performed = 0;
        for lane in lanes_of(lanes.execute) {
            let (space, _) = classify_generic(addresses[lane]);
            let asked = operation.space == Space::Generic && says != PredicateRegister::True;
            if asked && !function.is_native_in(space, kind) {
                continue;
            }
            performed |= 1 << lane;
            for element in 0..usize::from(operation.elements) {
                let address = addresses[lane] + (element * bytes) as u64;
                let place = self.slice(operation.space, address, bytes, first_thread + lane)?;
                let mut old = [0; 16];
                old[..bytes].copy_from_slice(place);
                let old = u128::from_le_bytes(old);
                let word = |n: usize, word: usize| {
                    let mut room = ScratchRegister::uninit();
                    lanes.raw_at(operation.values[n], word as u16, &mut room).0[lane]
                };
                let value = |n: usize| {
                    let words = (0..bytes.div_ceil(4)).rev();
                    words.fold(0, |value, at| value << 32 | u128::from(word(n, at))) & cut
                };
                let (a, b) = match function {
                    AtomicOperation::CompareAndSwap | AtomicOperation::CompareAndTest => {
                        (value(0), value(1))
                    }
                    _ => (value(element), 0),
                };
                let new = atomic::apply(function, kind, old, a, b)
                    .ok_or_else(|| format!("no atomic {function:?} on {kind:?}"))?;
                place.copy_from_slice(&new.to_le_bytes()[..bytes]);
                let answer = atomic::answer(function, kind, old, a);
                if let (Action::Atomic(..), Some(row)) = (operation.action, operation.data[element])
                {
                    for word in 0..bytes.div_ceil(4) {
                        lanes.registers[usize::from(row) + word].0[lane] =
                            (answer >> (32 * word)) as u32;
                    }
                }
            }
        }
        if says != PredicateRegister::True {
            lanes.set_predicate(says, performed);
        }
        Ok(())
    }
}

fn extend(element: Element, value: u128) -> u128 {
    match element {
        Element::S8 => value as i8 as i32 as u32 as u128,
        Element::S16 => value as i16 as i32 as u32 as u128,
        _ => value,
    }
}
