//! Calls of the device runtime, as an SM makes them: the arguments of its threads go to the work
//! distributor, and the answers come back. Only the last error of each thread is kept here.
//!
//! Left out: what is written to managed memory by such a call moves no page.
//!
//! Start reading at [`SmState::device_runtime_call`].

use lockstep_engine::Outbox;
use lockstep_isa::Instruction;
use lockstep_isa::device_runtime::DeviceRuntimeCall as Call;
use lockstep_isa::instruction::SystemCall;
use lockstep_isa::memory::{Space, classify_generic};
use lockstep_isa::warp_register::{LANES, lanes_of};
use lockstep_units::Bytes;

use super::issue_model::IssueModel;
use super::ordering::Waiter;
use super::problem::Problem;
use super::state::SmState;
use super::system::read_generic;
use crate::fault::FaultKind;
use crate::launch::LaunchContext;
use crate::memory::SECTOR;
use crate::message::{DeviceRuntimeLane, DeviceRuntimeRequest, Message};
use crate::sm::now::Now;

/// Errors of the threads of a warp.
pub type LastErrors = [u32; LANES];

impl SmState {
    /// A warp calls the device runtime. It goes on when the answer is here.
    pub(super) fn device_runtime_call(
        &mut self,
        slot: u8,
        context: &LaunchContext,
        instruction: &Instruction,
        system: &SystemCall,
        (call, library): (Call, bool),
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> Result<(), Problem> {
        if call.launches() && !self.warps[usize::from(slot)].released {
            // A grid sees what was written before its launch.
            let release = true;
            if self.fence(Waiter::Warp { slot, release }, false, 0) {
                self.slots.hold(slot);
                return Ok(());
            }
        }
        let warp = &mut self.warps[usize::from(slot)];
        warp.released = false;
        let lanes = warp.lanes(context, instruction);
        let execute = lanes.execute;
        let mut request = DeviceRuntimeRequest {
            launch: context.id.0,
            warp: slot,
            block: context.launch.block_number(lanes.identity.block),
            first_thread: 32 * lanes.identity.warp_in_block,
            call,
            library,
            result: system.result,
            lanes: lanes_of(execute).map(DeviceRuntimeLane::new).collect(),
        };
        let words = call.argument_words();
        let mut next = 0;
        for (operand, words) in system.arguments.iter().zip(words) {
            // A pair is one number, three registers are three.
            let rows: Vec<_> = (0..u16::from(*words))
                .map(|word| lanes.raw(*operand, word))
                .collect();
            for lane in &mut request.lanes {
                let of = |word: usize| u64::from(rows[word].0[usize::from(lane.lane)]);
                match words {
                    2 => lane.arguments[next] = of(0) | of(1) << 32,
                    _ => (0..rows.len()).for_each(|word| lane.arguments[next + word] = of(word)),
                }
            }
            next += if *words == 2 { 1 } else { rows.len() };
        }
        self.warps[usize::from(slot)].convergence.advance();
        if call.is_of_thread() {
            self.last_error(&mut request);
            self.write_answers(&request);
            return Ok(());
        }
        if call == Call::LaunchDevice {
            self.read_dimensions(&mut request);
        }
        self.check_destinations(&request)?;
        let wiring = self.port.wiring;
        let size = Bytes(wiring.header + 64 * request.lanes.len() as u64);
        let message = Message::DeviceRuntime(Box::new(request));
        outbox.send(wiring.report, wiring.dispatcher, now.time, size, message);
        self.slots.hold(slot);
        Ok(())
    }

    /// The last errors of threads: answered, and changed if the call does so.
    fn last_error(&mut self, request: &mut DeviceRuntimeRequest) {
        let slot = request.warp;
        for lane in &mut request.lanes {
            let index = usize::from(lane.lane);
            let last = self
                .last_errors
                .get(&slot)
                .map_or(0, |errors| errors[index]);
            let next = match request.call {
                Call::SetLastError => lane.arguments[0] as u32,
                Call::TakeLastError => 0,
                _ => last,
            };
            lane.answer = u64::from(match request.call {
                Call::SetLastError => next,
                _ => last,
            });
            if next != last {
                self.last_errors.entry(slot).or_insert([0; LANES])[index] = next;
            }
        }
    }

    /// Replaces pointers to the dimensions of grid and block by what they point to; by nothing where that cannot be
    /// read.
    fn read_dimensions(&self, request: &mut DeviceRuntimeRequest) {
        let warp = &self.warps[usize::from(request.warp)];
        let block = self.blocks.blocks[usize::from(warp.block)].as_deref();
        for lane in &mut request.lanes {
            let [kernel, buffer, grid, size, shared, stream, ..] = lane.arguments;
            let mut dimensions = [0; 6];
            for (axes, address) in dimensions.chunks_exact_mut(3).zip([grid, size]) {
                let mut bytes = [0; 12];
                let index = usize::from(lane.lane);
                if read_generic(warp, block, &self.port, index, address, &mut bytes) {
                    for (axis, word) in axes.iter_mut().zip(bytes.as_chunks().0) {
                        *axis = u64::from(u32::from_le_bytes(*word));
                    }
                }
            }
            let [x, y, z, bx, by, bz] = dimensions;
            lane.arguments = [kernel, buffer, x, y, z, bx, by, bz, shared, stream];
        }
    }

    /// Refuses pointers that a call could not write to.
    fn check_destinations(&mut self, request: &DeviceRuntimeRequest) -> Result<(), Problem> {
        let warp = &self.warps[usize::from(request.warp)];
        let block = self.blocks.blocks[usize::from(warp.block)].as_deref();
        for lane in &request.lanes {
            let [address, second, ..] = lane.arguments;
            let bytes = u32::from(request.call.stored_bytes(second));
            // Nothing at all is for the device runtime to refuse.
            if bytes == 0 || address == 0 {
                continue;
            }
            let (space, offset) = classify_generic(address);
            let fits = match space {
                Space::Local => warp.local.holds(offset, bytes),
                Space::Shared => {
                    let shared = block.map_or(0, |block| block.shared.len() as u64);
                    offset.saturating_add(u64::from(bytes)) <= shared
                }
                _ => self.port.holds(address, u64::from(bytes)),
            };
            if !fits {
                let nearest = self.port.contents.nearest(address);
                let what = "store by the device runtime".into();
                let kind = FaultKind::IllegalAddress {
                    what,
                    address,
                    bytes,
                    nearest,
                };
                let lane = usize::from(lane.lane);
                return Err(Problem { lane, kind });
            }
        }
        Ok(())
    }

    /// The answer is here.
    pub(super) fn device_runtime_done<M: IssueModel>(
        &mut self,
        model: &mut M,
        request: &DeviceRuntimeRequest,
        now: Now,
    ) {
        for lane in &request.lanes {
            let [address, second, ..] = lane.arguments;
            let bytes = usize::from(request.call.stored_bytes(second));
            if let Some(value) = lane.stored.filter(|_| bytes > 0) {
                let value = &value.to_le_bytes()[..bytes];
                self.write_generic(request.warp, usize::from(lane.lane), address, value, now);
            }
            if lane.last_error != 0 {
                let errors = self.last_errors.entry(request.warp);
                errors.or_insert([0; LANES])[usize::from(lane.lane)] = lane.last_error;
            }
        }
        self.write_answers(request);
        self.release(model, 1 << request.warp, now.cycle);
    }

    fn write_answers(&mut self, request: &DeviceRuntimeRequest) {
        let Some(first) = request.result else {
            return;
        };
        let registers = &mut self.warps[usize::from(request.warp)].registers;
        for lane in &request.lanes {
            for word in 0..u16::from(request.call.result_words()) {
                let value = (lane.answer >> (32 * word)) as u32;
                registers[usize::from(first + word)].0[usize::from(lane.lane)] = value;
            }
        }
    }

    /// Overwrites bytes at a generic address that was checked.
    fn write_generic(&mut self, slot: u8, lane: usize, address: u64, bytes: &[u8], now: Now) {
        let (space, offset) = classify_generic(address);
        let warp = &mut self.warps[usize::from(slot)];
        match space {
            Space::Local => warp.local.write(lane, offset as u32, bytes),
            Space::Shared => {
                let block = self.blocks.blocks[usize::from(warp.block)].as_deref_mut();
                let range = offset as usize..offset as usize + bytes.len();
                if let Some(to) = block.and_then(|block| block.shared.get_mut(range)) {
                    to.copy_from_slice(bytes);
                }
            }
            _ => {
                for (at, byte) in (address..).zip(bytes) {
                    let mut sector = [0; SECTOR as usize];
                    sector[(at % SECTOR) as usize] = *byte;
                    let mask = 1 << (at % SECTOR);
                    self.port.log.write(at / SECTOR, &sector, mask, now.since);
                }
            }
        }
    }
}
