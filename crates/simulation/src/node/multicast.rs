//! Multicast objects of a node: which GPU has which memory at their addresses, and what the GPUs put on each other's
//! links by them.
//!
//! A GPU that uses an object puts packets on the links of all its members. Between two meetings it knows of its own
//! alone; at a meeting all are told what the others have put on which link, and their own accesses wait for it. So the
//! links of a node carry what they can and no more, and a GPU learns of the others as late as it learns anything.

use super::Node;
use lockstep_gpu::LinkLoad;
use lockstep_gpu::memory::{MulticastMapping, MulticastMember};
use lockstep_runtime::device::MulticastView;
use lockstep_units::{Duration, Time};

impl Node {
    /// Says what multicast object kernels of a GPU have at an address.
    pub(super) fn set_multicast_of(&mut self, gpu: u32, address: u64, view: Option<MulticastView>) {
        if gpu as usize >= self.machines.count() {
            return;
        }
        self.open_gpu(gpu);
        if self.ranks.is_some() {
            // What slices on other ranks put on links is not known here.
            let words = "multicast objects are not simulated by several ranks: run without --ranks";
            self.machines[gpu as usize].fail(words.to_owned());
            return;
        }
        if let Some(view) = &view {
            self.multicast = true;
            self.begin_sharing(self.node_of(gpu));
            for member in &view.members {
                self.open_gpu(member.gpu);
                for (offsets, place) in &member.bound {
                    let bytes = offsets.end - offsets.start;
                    self.machines[member.gpu as usize].open_to_peers(*place, bytes);
                }
            }
        }
        let mapping = view.map(|view| MulticastMapping {
            addresses: address..address + view.bytes,
            writable: view.writable,
            members: view
                .members
                .into_iter()
                .map(|member| MulticastMember {
                    gpu: member.gpu,
                    bound: member.bound,
                })
                .collect(),
        });
        self.machines[gpu as usize].set_multicast(address, mapping);
    }

    /// Tells all GPUs what the others have put on links since a time.
    pub(super) fn exchange_link_loads(&mut self, since: Time) {
        if !self.multicast {
            return;
        }
        let each = self.each as usize;
        for node in 0..self.machines.count() / each.max(1) {
            self.exchange_on(node * each, since);
        }
    }

    /// The same on the node whose GPUs begin with a number.
    fn exchange_on(&mut self, first: usize, since: Time) {
        let each = self.each as usize;
        // What each GPU has put on the link of each other one.
        let mut all = vec![vec![LinkLoad::default(); each]; each];
        let mut any = false;
        for (sender, loads) in all.iter_mut().enumerate() {
            if self.machines.get(first + sender).is_none() {
                continue;
            }
            let Some(taken) = self.machines[first + sender].take_link_loads() else {
                continue;
            };
            any = true;
            let others = (0..each).filter(|other| *other != sender);
            for (other, load) in others.zip(taken) {
                loads[other] = load;
            }
        }
        if !any {
            return;
        }
        for gpu in 0..each {
            if self.machines.get(first + gpu).is_none() {
                continue;
            }
            // Of its own it knows already.
            let of_others = |link: usize| {
                let senders = (0..each).filter(|sender| *sender != gpu);
                senders
                    .map(|sender| all[sender][link])
                    .fold(LinkLoad::default(), sum)
            };
            let others: Vec<LinkLoad> = (0..each)
                .filter(|other| *other != gpu)
                .map(of_others)
                .collect();
            self.machines[first + gpu].add_link_loads(since, of_others(gpu), &others);
        }
    }
}

fn sum(one: LinkLoad, other: LinkLoad) -> LinkLoad {
    LinkLoad {
        up: Duration(one.up.0 + other.up.0),
        down: Duration(one.down.0 + other.down.0),
    }
}
