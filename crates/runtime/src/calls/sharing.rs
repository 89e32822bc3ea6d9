//! Processes that leave, and what becomes of those that have memory in common with one that is killed.
//!
//! Their kernels may wait for each other, and nothing would end a wait for one that is gone. A real driver ends all
//! clients of MPS when one of them ends abnormally, with a code of its own, and so are those ended here that have
//! had memory in common with it, directly or through others. Processes that share nothing go on.
//!
//! Start reading at [`Runtime::killed`].

use crate::device::{Device, Fault};
use crate::{CallResult, Client, Runtime};
use lockstep_protocol::{ContextHandle, CuResult, Reply};
use std::collections::BTreeSet;

/// Which processes have opened memory of which others, until one of the two is gone.
#[derive(Debug, Default)]
pub(crate) struct Sharing(BTreeSet<(u32, u32)>);

impl Sharing {
    /// A process has memory of another one.
    pub(super) fn note(&mut self, process: u32, owner: u32) {
        if process != owner {
            self.0.insert((process, owner));
        }
    }

    /// A process is gone.
    pub fn forget(&mut self, process: u32) {
        self.0
            .retain(|(one, other)| *one != process && *other != process);
    }

    /// Processes that have memory in common with one, directly or through others.
    fn with(&self, process: u32) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        let mut open = vec![process];
        while let Some(known) = open.pop() {
            for &(one, other) in &self.0 {
                let next = match known {
                    _ if one == known => other,
                    _ if other == known => one,
                    _ => continue,
                };
                if next != process && found.insert(next) {
                    open.push(next);
                }
            }
        }
        found
    }
}

impl<D: Device> Runtime<D> {
    /// What is at an address. Who opens memory of another process asks this first.
    pub(super) fn pointer_info(&mut self, client: Client, address: u64) -> CallResult<Reply> {
        let info = self.memory.find(address).map(|allocation| allocation.info);
        let owner = info.and_then(|info| self.contexts.get(&info.context));
        if let Some(owner) = owner.map(|context| context.process) {
            self.sharing.note(client.process, owner);
        }
        Ok(Reply::Pointer(info))
    }

    /// A process is gone: its contexts go with it.
    pub fn detach(&mut self, process: u32) {
        let gone: Vec<ContextHandle> = self
            .contexts
            .iter()
            .filter(|(_, context)| context.process == process)
            .map(|(handle, _)| *handle)
            .collect();
        for handle in gone {
            self.destroy_context(handle);
        }
        self.annotations.ended(process);
        self.host_views.forget(process);
        self.sharing.forget(process);
    }

    /// A process was killed, as `words` say. What it had goes, and so does the work of those that had memory in
    /// common with it.
    pub fn killed(&mut self, process: u32, words: &str) {
        let concerned = self.sharing.with(process);
        self.detach(process);
        let contexts = self.contexts.iter();
        let dead: Vec<(ContextHandle, u32)> = contexts
            .filter(|(_, context)| concerned.contains(&context.process) && context.sticky.is_none())
            .map(|(handle, context)| (*handle, context.process))
            .collect();
        for (handle, other) in dead {
            let fault = Fault {
                code: CuResult::MPS_CLIENT_TERMINATED,
                launch: None,
                message: format!(
                    "{words}; process {other} of the run had memory in common with it and may wait for it in vain: \
                     its work is given up"
                ),
                address: None,
                of_simulator: false,
            };
            let _ = self.take_fault(fault, Some(handle));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_in_common_through_others_until_one_is_gone() {
        let mut sharing = Sharing::default();
        for (process, owner) in [(1, 0), (2, 1), (3, 3), (5, 4)] {
            sharing.note(process, owner);
        }
        assert_eq!(sharing.with(0), BTreeSet::from([1, 2]));
        assert_eq!(sharing.with(1), BTreeSet::from([0, 2]));
        assert_eq!(sharing.with(3), BTreeSet::new());
        sharing.forget(1);
        assert_eq!(sharing.with(0), BTreeSet::new());
        assert_eq!(sharing.with(4), BTreeSet::from([5]));
    }
}
