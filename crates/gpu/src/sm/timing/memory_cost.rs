//! What a memory instruction takes: wavefronts, the MIO queue, shared memory or L1TEX.
//!
//! Start reading at [`Timing::memory_cost`].

use lockstep_engine::Outbox;

use super::Timing;
use super::account::{Cost, Issued};
use crate::memory::SECTOR;
use crate::message::Message;
use crate::parameters::SmParameters;
use crate::sm::front_end::issue_table::{IssueInfo, Pipe};
use crate::sm::issue_model::IssueModel;
use crate::sm::lsu::l1tex::{Access, Manner, Requester};
use crate::sm::lsu::line_set::LineSet;
use crate::sm::lsu::outcome::{Done, SharedAtomic, Traffic};
use crate::sm::lsu::transactions::NOBODY;
use crate::sm::lsu::write_combining::Store;
use crate::sm::now::{Now, PENDING};
use crate::sm::state::SmState;
use crate::sm::sub_core::scoreboard::NO_GROUP;
use crate::sm::translation::deferred::DeferredLoad;

/// Cycles after which an access that touches nothing is done.
const NOTHING_TOUCHED: u64 = 2;

impl Timing {
    /// What a memory instruction takes; sends for what it needs from L2.
    pub(super) fn memory_cost(
        &mut self,
        state: &mut SmState,
        issued: &Issued,
        info: &IssueInfo,
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> Cost {
        let done = state.port.done;
        let lines = match done.traffic {
            Traffic::Global { .. } | Traffic::Local { .. } => {
                Some(LineSet::of(state.port.found.sectors()))
            }
            _ => None,
        };
        if done.changed {
            let changed = state.port.changed.sectors();
            self.lsu.l1tex.invalidate_sectors(changed);
        }
        let sectors = state.port.found.count as u64;
        let mut wavefronts = wavefronts(&done, lines.as_ref(), sectors, &self.parameters);
        if let (Traffic::Global { write: true }, Some(set)) = (done.traffic, &lines) {
            let (whole, bytes) = (state.port.partial == 0, self.parameters.lsu.store_bytes);
            let l1tex = &self.lsu.l1tex;
            let (warp, at) = (issued.slot, now.cycle);
            let store = Store { warp, at };
            wavefronts = wavefronts.max(l1tex.store_wavefronts(set, whole, store, bytes));
        }
        if let Some(block) = state.blocks.blocks[issued.block].as_mut()
            && !matches!(done.traffic, Traffic::Constant | Traffic::None)
        {
            block.counters.l1_wavefronts += wavefronts;
        }
        let interval = u64::from(info.interval);
        let sub_core = issued.sub_core;
        let mio = &mut self.lsu.mio;
        let entry = mio.enter(sub_core, now.cycle, wavefronts, interval);
        let ports = &mut self.sub_cores[sub_core].ports;
        ports.set_free(Pipe::LoadStore, entry.room);
        let last = entry.taken + wavefronts - 1;
        let operands = entry.taken + u64::from(info.operands);
        let ready = match done.traffic {
            Traffic::None => now.cycle + NOTHING_TOUCHED,
            Traffic::Remote => {
                let pending = done.transaction != NOBODY;
                return Cost {
                    ready: if pending { PENDING } else { operands },
                    long: true,
                    operands,
                };
            }
            Traffic::Mbarrier => last + self.parameters.lsu.mbarrier_latency,
            Traffic::Constant => {
                let launch = state.blocks.launch_of(issued.block as u8);
                let launch = launch.map_or(0, |launch| launch.id.0);
                let constants = &mut self.front_end.constants;
                let (words, share) = (&state.port.constants, state.port.share);
                let there = constants.read(launch, words, entry.taken, share);
                there.max(last) + self.parameters.sub_core.constant_latency
            }
            Traffic::Shared { atomic, .. } => {
                last + shared_latency(&self.parameters, info, atomic, wavefronts)
            }
            Traffic::Texture { quarters } => {
                let ready = self.texture_access(state, issued, info, entry.taken, quarters, outbox);
                return Cost {
                    ready,
                    long: true,
                    operands,
                };
            }
            Traffic::Global { .. } | Traffic::Local { .. } => {
                let lines = lines.unwrap_or_else(|| LineSet::of(&[]));
                let pipe = (entry.taken, wavefronts);
                let (ready, group) =
                    self.cached_access(state, issued, info, lines, pipe, now, outbox);
                // The registers of a copy are free once they are read.
                let ready = if group == NO_GROUP { ready } else { operands };
                return Cost {
                    ready,
                    long: true,
                    operands,
                };
            }
        };
        Cost {
            ready,
            long: false,
            operands,
        }
    }

    /// An access to global or local memory, which the pipe takes at `pipe.0` for `pipe.1` cycles.
    /// Says when it is done, or [`PENDING`], and its group of copies.
    fn cached_access(
        &mut self,
        state: &mut SmState,
        issued: &Issued,
        info: &IssueInfo,
        mut lines: LineSet,
        (taken, wavefronts): (u64, u64),
        now: Now,
        outbox: &mut Outbox<'_, Message>,
    ) -> (u64, u32) {
        let done = state.port.done;
        let last = taken + wavefronts - 1;
        let wide = u64::from(info.words.max(1) - 1) * self.parameters.lsu.wide_global;
        let scoreboard = &mut self.warps.scoreboards[usize::from(issued.slot)];
        let group = if info.copies {
            scoreboard.open_copies()
        } else {
            NO_GROUP
        };
        let mut access = Access {
            slot: issued.slot,
            block: issued.block,
            pc: issued.pc,
            manner: match done.traffic {
                Traffic::Local { write: true } => Manner::StoreLocal,
                Traffic::Global { write: true } => Manner::Store,
                _ if info.bypass => Manner::LoadBypass,
                Traffic::Local { .. } => Manner::LoadLocal,
                _ => Manner::Load,
            },
            transaction: done.transaction,
            group,
            taken,
            wavefronts,
            hit: last + self.parameters.lsu.l1_latency + wide,
            fill: wide,
            partial: state.port.partial,
        };
        if done.strong_load && done.transaction != NOBODY {
            // They have left already, and pass the pipe when they come back.
            let late = wide + last - now.cycle;
            let transactions = &mut state.port.transactions;
            transactions.delay(done.transaction, late as u16);
        }
        let mut full = None;
        let Some(mut requester) = requester(state, &access, outbox) else {
            return (access.hit, group);
        };
        if let Some((translated, deferred)) = requester.translate(&lines, &mut access) {
            lines = translated;
            if deferred > 0 {
                let translation = requester.port.translation.as_mut();
                full = translation.map(|translation| translation.update_full(taken));
            }
        }
        let ready = if !lines.is_empty() {
            self.lsu.l1tex.access(&lines, &mut access, &mut requester)
        } else if access.transaction != NOBODY && access.manner != Manner::Store {
            PENDING
        } else {
            access.hit
        };
        if let Some((full, opened)) = full {
            if opened {
                self.wake_all();
            }
            self.set_translation_full(full);
        }
        if access.manner == Manner::Store
            && let Some(block) = state.blocks.blocks[issued.block].as_mut()
        {
            block.stored = last + self.parameters.lsu.store_latency;
        }
        if group != NO_GROUP {
            self.warps.scoreboards[usize::from(issued.slot)].copy(ready);
        }
        (ready, group)
    }

    /// Accesses L1 for a load whose page has its translation now. Says when it is done if it hits.
    pub(super) fn access_deferred(
        &mut self,
        state: &mut SmState,
        load: DeferredLoad,
        at: u64,
        outbox: &mut Outbox<'_, Message>,
    ) -> u64 {
        let known = state.port.transactions.get(load.transaction);
        let hit = at + self.parameters.lsu.l1_latency;
        let mut access = Access {
            slot: known.warp,
            block: usize::from(state.warps[usize::from(known.warp)].block),
            pc: known.pc,
            manner: if load.bypass {
                Manner::LoadBypass
            } else {
                Manner::Load
            },
            transaction: load.transaction,
            group: known.group,
            taken: at,
            wavefronts: 1,
            hit,
            fill: u64::from(known.fill),
            partial: 0,
        };
        let mut set = LineSet::of(&[]);
        set.push(load.line, load.sectors);
        if let Some(mut requester) = requester(state, &access, outbox) {
            self.lsu.l1tex.access(&set, &mut access, &mut requester);
        }
        hit
    }
}

/// What an access may reach outside of the load/store unit; `None` if its block has ended.
pub(super) fn requester<'a, 'o>(
    state: &'a mut SmState,
    access: &Access,
    outbox: &'a mut Outbox<'o, Message>,
) -> Option<Requester<'a, 'o>> {
    let block = state.blocks.blocks[access.block].as_mut()?;
    Some(Requester {
        clock: state.parameters.clock,
        port: &mut state.port,
        warp: &mut state.warps[usize::from(access.slot)],
        tag: block.tag,
        counters: &mut block.counters,
        outbox,
    })
}

/// Cycles for which an access takes the pipe, but for what stores to global memory add.
fn wavefronts(
    done: &Done,
    lines: Option<&LineSet>,
    sectors: u64,
    parameters: &SmParameters,
) -> u64 {
    let lines = lines.map_or(0, LineSet::len) as u64;
    let strong = u64::from(done.strong_lines);
    match done.traffic {
        Traffic::Shared { wavefronts, .. } => u64::from(wavefronts),
        Traffic::Local { .. } => u64::from(done.wavefronts).max(1),
        Traffic::Global { write: false } if done.wavefronts > 0 => lines
            .div_ceil(parameters.lsu.l1_load_tags)
            .max(u64::from(done.wavefronts))
            .max(strong),
        Traffic::Global { write } => {
            let wavefronts = (lines + strong).div_ceil(parameters.lsu.l1_lines_per_cycle);
            // Within a line, sectors take as long as the array takes to deliver them.
            let sectors = if write { 0 } else { sectors };
            let bytes = sectors * SECTOR + (1 << parameters.lsu.l1_bytes_shift) - 1;
            let delivered = bytes >> parameters.lsu.l1_bytes_shift;
            wavefronts.max(delivered).max(1)
        }
        Traffic::Constant
        | Traffic::None
        | Traffic::Mbarrier
        | Traffic::Remote
        | Traffic::Texture { .. } => 1,
    }
}

/// Cycles from the last wavefront of an access to shared memory to its value.
fn shared_latency(
    parameters: &SmParameters,
    info: &IssueInfo,
    atomic: Option<SharedAtomic>,
    wavefronts: u64,
) -> u64 {
    if let Some(atomic) = atomic {
        let adds = u64::from(atomic.swaps) + u64::from(atomic.wide);
        let latency = parameters.lsu.shared_atomic_latency
            + adds * parameters.lsu.shared_swap_adds
            + u64::from(atomic.waiting) * parameters.lsu.shared_atomic_conflict;
        latency.saturating_sub(wavefronts - 1)
    } else if info.words >= 4 {
        parameters.lsu.shared_latency + parameters.lsu.wide_shared
    } else {
        parameters.lsu.shared_latency
    }
}
