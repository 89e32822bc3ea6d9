//! Calls that leave the device code: print, allocate, assert, trap, sleep; those of the device runtime are in
//! `device_runtime`.

use lockstep_engine::Outbox;
use lockstep_isa::instruction::{SystemCall, SystemCallKind};
use lockstep_isa::memory::{Space, classify_generic};
use lockstep_isa::warp_register::{LANES, lanes_of};
use lockstep_isa::{Instruction, Mask};
use lockstep_units::{Bytes, Duration};

use super::cta::Block;
use super::print;
use super::problem::Problem;
use super::state::SmState;
use super::warp::Warp;
use crate::fault::FaultKind;
use crate::launch::LaunchContext;
use crate::memory::SECTOR;
use crate::message::{HeapRequest, Message};
use crate::sm::lsu::port::Port;
use crate::sm::now::Now;

/// The longest sleep: what PTX promises at most.
const LONGEST_SLEEP: u64 = 2_000_000;

/// Nanoseconds that `NANOSLEEP.SYNCS` takes after a test in vain, whatever it is asked for: on an H200 such a
/// `try_wait` takes 126 cycles more than one without a hint.
const SLEEP_AT_MBARRIER: u32 = 50;

impl SmState {
    pub(super) fn system_call(
        &mut self,
        slot: u8,
        context: &LaunchContext,
        instruction: &Instruction,
        call: &SystemCall,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> Result<(), Problem> {
        let warp = &mut self.warps[usize::from(slot)];
        let lanes = warp.lanes(context, instruction);
        let execute = lanes.execute;
        let wide = |index: usize| match call.arguments.get(index) {
            Some(operand) => lanes.pair(*operand),
            None => [0; LANES],
        };
        let narrow = |index: usize| match call.arguments.get(index) {
            Some(operand) => lanes.raw(*operand, 0).0,
            None => [0; LANES],
        };
        if execute == 0 {
            warp.convergence.advance();
            return Ok(());
        }
        let lane = execute.trailing_zeros() as usize;
        match call.kind {
            SystemCallKind::DeviceRuntime {
                call: of_runtime,
                library,
            } => {
                let what = (of_runtime, library);
                return self.device_runtime_call(
                    slot,
                    context,
                    instruction,
                    call,
                    what,
                    now,
                    outbox,
                );
            }
            SystemCallKind::Print => {
                let (formats, arguments) = (wide(0), wide(1));
                self.print(slot, execute, &formats, &arguments, call.result, now);
            }
            SystemCallKind::Allocate | SystemCallKind::Free => {
                let allocate = call.kind == SystemCallKind::Allocate;
                let values = wide(0);
                let request = HeapRequest {
                    warp: slot,
                    result: call.result.filter(|_| allocate),
                    allocate,
                    lanes: lanes_of(execute)
                        .map(|lane| (lane as u8, values[lane]))
                        .collect(),
                    pc: warp.convergence.pc(),
                    invalid: None,
                };
                let wiring = self.port.wiring;
                let size = Bytes(wiring.header + 8 * u64::from(execute.count_ones()));
                let message = Message::Heap(Box::new(request));
                outbox.send(wiring.report, wiring.dispatcher, now.time, size, message);
                self.slots.hold(slot);
            }
            SystemCallKind::AssertFail => {
                let (message, file, line, function) = (wide(0), wide(1), narrow(2), wide(3));
                let text = |lane: usize| {
                    let texts = (message[lane], file[lane], function[lane]);
                    (lane, self.assertion(slot, lane, texts, line[lane]))
                };
                let lines = lanes_of(execute).map(text).collect();
                self.assert_failed(slot, lines, now);
                return Ok(());
            }
            SystemCallKind::Trap => {
                let kind = FaultKind::Trap;
                return Err(Problem { lane, kind });
            }
            SystemCallKind::Breakpoint => {}
            SystemCallKind::Sleep | SystemCallKind::SleepAtMbarrier => {
                let times = narrow(0);
                let longest = lanes_of(execute).map(|lane| times[lane]).max().unwrap_or(0);
                let length = match call.kind {
                    SystemCallKind::SleepAtMbarrier => SLEEP_AT_MBARRIER,
                    _ => longest,
                };
                self.sleep(slot, context.launch.module.native, length, now);
                return Ok(());
            }
        }
        self.warps[usize::from(slot)].convergence.advance();
        Ok(())
    }

    /// Lets a warp sleep for some nanoseconds.
    fn sleep(&mut self, slot: u8, native: bool, nanoseconds: u32, now: Now) {
        let length = Duration::nanoseconds(u64::from(nanoseconds).min(LONGEST_SLEEP));
        let until = self.clock().cycle_at_or_after(now.time + length);
        let convergence = &mut self.warps[usize::from(slot)].convergence;
        if native && !convergence.waiting_paths().is_empty() {
            let before = (convergence.pc() + 1, convergence.active());
            convergence.yield_to_others(true);
            if before != (convergence.pc(), convergence.active()) {
                // Others run meanwhile; how long they take is not compared with the sleep.
                return;
            }
        } else {
            convergence.advance();
        }
        self.slots.hold(slot);
        self.ordering.sleep(until.0.max(now.cycle + 1), slot);
    }

    fn print(
        &mut self,
        slot: u8,
        execute: Mask,
        formats: &[u64; LANES],
        arguments: &[u64; LANES],
        result: Option<u16>,
        now: Now,
    ) {
        let warp = &mut self.warps[usize::from(slot)];
        let block = self.blocks.blocks[usize::from(warp.block)].as_deref();
        for lane in lanes_of(execute) {
            let mut read = |address: u64, bytes: &mut [u8]| {
                read_generic(warp, block, &self.port, lane, address, bytes)
            };
            let format = print::read_text(&mut read, formats[lane]);
            let (text, taken) = print::format(&format, arguments[lane], &mut read);
            let text = String::from_utf8_lossy(&text).into_owned();
            self.printer.add(text, self.number, now.cycle);
            if let Some(register) = result {
                warp.registers[usize::from(register)].0[lane] = taken;
            }
        }
    }

    fn assertion(
        &self,
        slot: u8,
        lane: usize,
        (message, file, function): (u64, u64, u64),
        line: u32,
    ) -> String {
        let warp = &self.warps[usize::from(slot)];
        let block = self.blocks.blocks[usize::from(warp.block)].as_deref();
        let text = |address: u64| {
            let mut read = |address: u64, bytes: &mut [u8]| {
                read_generic(warp, block, &self.port, lane, address, bytes)
            };
            let bytes = print::read_text(&mut read, address);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let [bx, by, bz] = warp.identity.block;
        let [tx, ty, tz] = warp.identity.thread(lane);
        format!(
            "{}:{line}: {}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{}` failed.",
            text(file),
            text(function),
            text(message)
        )
    }
}

/// Copies bytes at a generic address of a lane; false if it cannot.
pub(super) fn read_generic(
    warp: &Warp,
    block: Option<&Block>,
    port: &Port,
    lane: usize,
    address: u64,
    bytes: &mut [u8],
) -> bool {
    let (space, offset) = classify_generic(address);
    let length = bytes.len() as u64;
    match space {
        Space::Local => {
            let inside = warp.local.holds(offset, length as u32);
            if inside {
                warp.local.read(lane, offset as u32, bytes);
            }
            inside
        }
        Space::Shared => {
            let shared = block.map_or(&[][..], |block| &block.shared);
            let range = offset as usize..(offset + length) as usize;
            shared.get(range).is_some_and(|from| {
                bytes.copy_from_slice(from);
                true
            })
        }
        _ => {
            let inside = port
                .contents
                .find(address)
                .is_some_and(|range| length <= range.end - address);
            if inside {
                for (at, byte) in (address..).zip(bytes) {
                    *byte = port.sector(at / SECTOR)[(at % SECTOR) as usize];
                }
            }
            inside
        }
    }
}
