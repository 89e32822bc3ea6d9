//! The node as the runtime sees it.
//!
//! One GPU is asked about managed memory directly; several have a directory (`managed.rs`).

use super::Node;
use super::managed::Paging;
use crate::checkpoint::Kind;
use crate::host::Inside;
use lockstep_isa::Launch;
use lockstep_protocol::{Extent, MemoryAccess, Rows};
use lockstep_runtime::device::{
    Advance, Advice, Carry, Fault, Listener, MulticastView, Part, Transfer,
};
use lockstep_runtime::{Device, LaunchSummary};
use lockstep_units::Time;
use std::ops::Range;

impl Device for Node {
    fn note(&mut self, part: Part, at: Time, words: &dyn Fn() -> String) {
        self.machines[0].note(part, at, words);
    }

    fn announce(&mut self, launch: &LaunchSummary) {
        self.machines[launch.gpu as usize].announce(launch);
    }

    fn transfer(&mut self, transfer: &Transfer) {
        if let Some(only) = self.machines.only_mut() {
            only.transfer(transfer);
        }
    }

    fn gpus(&self) -> u32 {
        self.machines.count() as u32
    }

    fn neighbours(&self, gpu: u32) -> Range<u32> {
        let first = self.node_of(gpu) * self.each;
        first..first + self.each
    }

    fn open(&mut self, gpu: u32) {
        self.open_gpu(gpu);
    }

    fn now(&self) -> Time {
        match self.machines.only() {
            Some(only) => self.stands_at().unwrap_or_else(|| only.now()),
            None => self.reached,
        }
    }

    fn launch(&mut self, gpu: u32, id: u64, launch: Launch) -> Result<(), Fault> {
        self.launch_logged(gpu, id, launch)
    }

    fn host_is_inside(&mut self, threads: &Inside) {
        if self.is_cluster() {
            self.host.clone_from(threads);
        }
        for machine in self.machines.iter_mut() {
            machine.host_is_inside(threads);
        }
    }

    fn listen(&mut self, listener: Option<Listener>) {
        for machine in self.machines.iter_mut() {
            machine.listen(listener.clone());
        }
    }

    fn advance(&mut self, limit: Time) -> Advance {
        match self.machines.only() {
            Some(_) => self.advance_logged(limit),
            None => self.advance_all(limit),
        }
    }

    fn abort(&mut self, gpu: u32) {
        match self.machines.only() {
            Some(_) => self.abort_logged(gpu),
            // One that was never built has nothing to give up.
            None if self.machines.get(gpu as usize).is_none() => {}
            None => {
                self.machines[gpu as usize].abort(gpu);
                self.paging_aborted(gpu);
            }
        }
    }

    fn take_output(&mut self) -> Vec<u8> {
        if self.machines.count() == 1 {
            return self.ask(Kind::Output, Device::take_output);
        }
        let outputs = self.machines.iter_mut().map(Device::take_output);
        outputs.flatten().collect()
    }

    fn map(&mut self, gpu: u32, address: u64, bytes: u64) {
        self.note_allocated(address);
        self.map_everywhere(gpu, address, bytes);
    }

    fn alias(&mut self, gpu: u32, address: u64, bytes: u64, place: u64) -> bool {
        match self.machines.only() {
            Some(_) => self.ask(Kind::Alias, |only| only.alias(gpu, address, bytes, place)),
            None => self.alias_everywhere(gpu, address, bytes, place),
        }
    }

    fn unmap(&mut self, address: u64, bytes: u64) {
        match self.machines.only() {
            Some(_) => self.unmap_logged(address, bytes),
            None => self.unmap_everywhere(address, bytes),
        }
    }

    fn set_access(&mut self, gpu: u32, address: u64, bytes: u64, access: MemoryAccess) {
        self.set_access_everywhere(gpu, address, bytes, access);
    }

    fn name(&mut self, address: u64, bytes: u64, place: Option<u64>) {
        self.named.remove(address);
        if let Some(place) = place {
            self.named.insert(address..address + bytes, place);
        }
    }

    fn grant(&mut self, gpu: u32, address: u64, bytes: u64, place: u64, access: MemoryAccess) {
        self.grant_to(gpu, address..address + bytes, place, access);
    }

    fn set_multicast(&mut self, gpu: u32, address: u64, view: Option<MulticastView>) {
        self.set_multicast_of(gpu, address, view);
    }

    fn relocate(&mut self, destination: u64, source: u64, bytes: u64) {
        let home = self.home(destination).max(self.home(source));
        self.machines[home].relocate(destination, source, bytes);
        self.note_written(destination, bytes);
    }

    fn read(&self, address: u64, bytes: &mut [u8]) {
        if self.named.is_empty() {
            return self.read_logged(address, bytes);
        }
        let mut rest = bytes;
        for (place, length) in self.named.pieces(address, rest.len() as u64) {
            let (piece, behind) = rest.split_at_mut(length as usize);
            self.read_logged(place, piece);
            rest = behind;
        }
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        let mut rest = bytes;
        for (place, length) in self.named.pieces(address, bytes.len() as u64) {
            let (piece, behind) = rest.split_at(length as usize);
            self.home_of_mut(place).write(place, piece);
            self.note_written(place, length);
            rest = behind;
        }
    }

    fn copy(&mut self, destination: u64, source: u64, bytes: u64) {
        if self.named.is_empty() {
            return self.copy_places(destination, source, bytes);
        }
        let mut at = source;
        for (to, length) in self.named.pieces(destination, bytes) {
            let mut to = to;
            for (from, length) in self.named.pieces(at, length) {
                self.copy_places(to, from, length);
                to += length;
            }
            at += length;
        }
    }

    fn dma_written(&mut self, rows: Rows, extent: Extent, from_host: bool) {
        if !self.is_playing() {
            let address = self.place(rows.address);
            let rows = Rows { address, ..rows };
            self.written_by_dma(rows, extent, from_host);
        }
    }

    fn set_heap(&mut self, gpu: u32, bytes: u64) {
        self.machines[gpu as usize].set_heap(gpu, bytes);
    }

    fn set_peer_access(&mut self, gpu: u32, peer: u32, allowed: bool) {
        self.set_peers(gpu, peer, allowed);
    }

    fn touched(&mut self, address: u64, bytes: u64) {
        for (place, length) in self.named.pieces(address, bytes) {
            self.home_of_mut(place).touched(place, length);
        }
    }

    fn managed_is_paged(&self) -> bool {
        self.look(Kind::Paged, Device::managed_is_paged)
    }

    fn refuses_managed(&self) -> Option<&'static str> {
        let between_ranks = self.ranks.is_some() && self.paging.is_some();
        between_ranks.then_some(
            "--ranks: managed memory of several GPUs, whose pages ranks do not tell each other of; run it with --ranks 1",
        )
    }

    fn managed_map(&mut self, address: u64, bytes: u64) {
        match self.paging {
            Some(_) => self.page(address, bytes),
            None => self.tell(|machine| machine.managed_map(address, bytes)),
        }
    }

    fn managed_unmap(&mut self, address: u64) {
        match self.paging {
            Some(_) => self.unpage(address),
            None => self.tell(|machine| machine.managed_unmap(address)),
        }
    }

    fn managed_prefetch(
        &mut self,
        ticket: u64,
        address: u64,
        bytes: u64,
        to: Option<u32>,
        at: Time,
    ) {
        match self.paging {
            Some(_) => self.page_ahead(ticket, (address, bytes), to, at),
            None => self.tell(|machine| machine.managed_prefetch(ticket, address, bytes, to, at)),
        }
    }

    fn managed_to_carry(&mut self) -> Vec<Carry> {
        let paging = self.paging.as_mut();
        paging.map_or_else(Vec::new, Paging::take_carries)
    }

    fn managed_carried(&mut self, number: u64, at: Time) {
        self.pages_carried(number, at);
    }

    fn managed_host_access(
        &mut self,
        ticket: u64,
        address: u64,
        bytes: u64,
        write: bool,
        at: Time,
    ) {
        match self.paging {
            Some(_) => self.page_back(ticket, (address, bytes), write, at),
            None => {
                self.tell(|machine| machine.managed_host_access(ticket, address, bytes, write, at))
            }
        }
    }

    fn managed_flushes(&self) -> bool {
        self.machines[0].managed_flushes()
    }

    fn managed_flush(&mut self, ticket: u64, at: Time) {
        match self.paging {
            Some(_) => self.page_all_back(ticket, at),
            None => self.tell(|machine| machine.managed_flush(ticket, at)),
        }
    }

    fn managed_done(&mut self, ticket: u64) -> Option<Time> {
        match self.paging {
            Some(_) => self.paged(ticket),
            None => self.ask(Kind::Done, |machine| machine.managed_done(ticket)),
        }
    }

    fn managed_populated(&mut self, address: u64, bytes: u64) {
        match self.paging {
            Some(_) => self.populate_on_others(address, bytes, None),
            None => self.tell(|machine| machine.managed_populated(address, bytes)),
        }
    }

    fn managed_resident(&self, address: u64) -> bool {
        match &self.paging {
            Some(paging) => !paging.away(address, 1).is_empty(),
            None => self.look(Kind::Resident, |machine| machine.managed_resident(address)),
        }
    }

    fn managed_resident_pages(&self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        match &self.paging {
            Some(paging) => paging.away(address, bytes),
            None => self.look(Kind::ResidentPages, |machine| {
                machine.managed_resident_pages(address, bytes)
            }),
        }
    }

    fn managed_changed(&mut self) -> bool {
        if self.paging.is_none() {
            return self.ask(Kind::Changed, Device::managed_changed);
        }
        let changes = self.machines.iter_mut().map(Device::managed_changed);
        changes.fold(false, |any, changed| any | changed)
    }

    fn managed_advise(&mut self, address: u64, bytes: u64, advice: Advice) {
        match self.paging {
            Some(_) => self.advise_pages(address, bytes, advice),
            None => self.tell(|machine| machine.managed_advise(address, bytes, advice)),
        }
    }
}
