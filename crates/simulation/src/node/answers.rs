//! Answers of a node of one GPU that checkpoints hold: logged while it works, and repeated without work until a
//! run that is resumed has come to its checkpoint.
//!
//! Whatever a runtime can learn from the device passes here, so that it makes the same of a program's calls.

use super::Node;
use crate::checkpoint::{Checkpoints, Kind, Played, SharedCheckpoints, State};
use crate::machine::Machine;
use crate::server::lock;
use lockstep_isa::Launch;
use lockstep_protocol::CuResult;
use lockstep_runtime::Device;
use lockstep_runtime::device::{Advance, Fault};
use lockstep_stats::Digest;
use lockstep_units::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::MutexGuard;

impl Node {
    /// Everything that a checkpoint has of the first GPU.
    pub fn state(&mut self) -> State {
        self.machines[0].state()
    }

    /// Logs answers from now on, or repeats those before the checkpoint.
    pub fn keep_checkpoints(&mut self, checkpoints: &SharedCheckpoints) {
        for machine in self.machines.iter_mut() {
            machine.keep_checkpoints(checkpoints);
        }
        self.checkpoints = Some(checkpoints.clone());
    }

    fn log(&self) -> Option<MutexGuard<'_, Checkpoints>> {
        self.checkpoints.as_ref().map(|shared| lock(shared))
    }

    /// Whether answers are repeated and the GPU does nothing.
    pub(super) fn is_playing(&self) -> bool {
        self.log().is_some_and(|log| log.is_playing())
    }

    /// Asks the first GPU, or repeats what it answered.
    pub(super) fn ask<T: Serialize + DeserializeOwned>(
        &mut self,
        kind: Kind,
        live: impl FnOnce(&mut Machine) -> T,
    ) -> T {
        if let Some(answer) = self.log().and_then(|mut log| log.played(kind)) {
            return answer;
        }
        let answer = live(&mut self.machines[0]);
        if let Some(mut log) = self.log() {
            log.keep(kind, &answer);
        }
        answer
    }

    /// The same, where nothing of the GPU changes.
    pub(super) fn look<T: Serialize + DeserializeOwned>(
        &self,
        kind: Kind,
        live: impl FnOnce(&Machine) -> T,
    ) -> T {
        if let Some(answer) = self.log().and_then(|mut log| log.played(kind)) {
            return answer;
        }
        let answer = live(&self.machines[0]);
        if let Some(mut log) = self.log() {
            log.keep(kind, &answer);
        }
        answer
    }

    /// Does something to the first GPU that nobody sees before it works.
    pub(super) fn tell(&mut self, live: impl FnOnce(&mut Machine)) {
        if !self.is_playing() {
            live(&mut self.machines[0]);
        }
    }

    /// Where it stands, while answers are repeated.
    pub(super) fn stands_at(&self) -> Option<Time> {
        self.log()?.now()
    }

    /// Hands a launch over, or only notes it.
    pub(super) fn launch_logged(&mut self, gpu: u32, id: u64, launch: Launch) -> Result<(), Fault> {
        let played: Option<Result<(), Fault>> =
            self.log().and_then(|mut log| log.played(Kind::Launched));
        if let Some(answer) = played {
            self.machines[0].note_launched(&launch);
            if let Some(mut log) = self.log() {
                log.keep_launch(id, launch);
            }
            return answer;
        }
        let answer = self.machines[gpu as usize].launch(gpu, id, launch);
        if let Some(mut log) = self.log() {
            log.keep(Kind::Launched, &answer);
        }
        answer
    }

    /// Advances, repeats how an advance ended, or goes on from the checkpoint.
    pub(super) fn advance_logged(&mut self, limit: Time) -> Advance {
        let Some(shared) = self.checkpoints.clone() else {
            return self.machines[0].advance(limit);
        };
        let played = lock(&shared).played_advance::<Advance>();
        let machine = &mut self.machines[0];
        match played {
            Played::Answer(advance) => {
                machine.note_played(&advance);
                return advance;
            }
            Played::Reached(state, launches) => {
                let log = lock(&shared);
                let restored = match log.began_elsewhere() {
                    Some(at) => machine.restore_elsewhere(&log, at, &state, launches),
                    None => machine.restore(&log, &state, launches),
                };
                drop(log);
                if let Err(error) = restored {
                    return Advance::Faulted(Fault {
                        code: CuResult::UNKNOWN,
                        launch: None,
                        message: format!("the run cannot be resumed: {error}"),
                        address: None,
                        of_simulator: true,
                    });
                }
            }
            Played::Live => {}
        }
        let advance = machine.advance(limit);
        let mut log = lock(&shared);
        machine.tell_written(&mut log);
        log.keep(Kind::Advanced, &(&advance, machine.now()));
        advance
    }

    /// Gives kernels up, or only says where the GPU stood then.
    pub(super) fn abort_logged(&mut self, gpu: u32) {
        let now = self.ask(Kind::Aborted, |machine| {
            machine.abort(gpu);
            machine.now()
        });
        if let Some(mut log) = self.log() {
            log.stands_at(now);
        }
    }

    /// Frees memory; the digest covers what it held when the GPU worked.
    pub(super) fn unmap_logged(&mut self, address: u64, bytes: u64) {
        let played: Option<Vec<(u64, Digest)>> =
            self.log().and_then(|mut log| log.played(Kind::Freed));
        let machine = &mut self.machines[0];
        if let Some(held) = played {
            return machine.unmap_as_before(address, bytes, &held);
        }
        machine.unmap(address, bytes);
        let held = machine.take_freed();
        if let Some(mut log) = self.log() {
            log.keep(Kind::Freed, &held);
        }
    }

    /// Reads memory, or repeats what was read.
    pub(super) fn read_logged(&self, address: u64, bytes: &mut [u8]) {
        if self
            .log()
            .is_some_and(|mut log| log.played_read(address, bytes))
        {
            return;
        }
        self.home_of(address).read(address, bytes);
        if let Some(mut log) = self.log() {
            log.keep_read(address, bytes);
        }
    }

    /// Notes memory that was allocated.
    pub(super) fn note_allocated(&self, address: u64) {
        if let Some(mut log) = self.log() {
            log.allocated(address);
        }
    }

    /// Notes memory that was written past kernels.
    pub(super) fn note_written(&self, address: u64, bytes: u64) {
        if let Some(mut log) = self.log() {
            log.wrote(address..address + bytes);
        }
    }
}
