//! Pages of an access that are managed memory: what has no translation is kept back.

use lockstep_units::Cycle;

use super::l1tex::{Access, Manner, Requester};
use super::line_set::LineSet;
use crate::memory::{LINE, PAGE};
use crate::sm::translation::Moment;
use crate::sm::translation::deferred::{Deferred, DeferredLoad};

impl Requester<'_, '_> {
    /// Looks up the pages of an access. What has no translation is kept back; the rest is given,
    /// with the transaction that is open now. `None` if no page of it is managed.
    pub fn translate(&mut self, set: &LineSet, access: &mut Access) -> Option<(LineSet, u16)> {
        let translation = self.port.translation.as_ref()?;
        let mut lines = set.iter();
        if !lines.any(|(line, _)| translation.is_managed(line * LINE)) {
            return None;
        }
        let write = matches!(access.manner, Manner::Store | Manner::StoreLocal);
        let mut translated = LineSet::of(&[]);
        let mut deferred = 0;
        for (index, (line, sectors)) in set.iter().enumerate() {
            let at = access.taken + index as u64;
            let moment = Moment {
                warp: access.slot,
                cycle: at,
                time: self.clock.edge(Cycle(at)),
                header: self.port.wiring.header,
            };
            let count = sectors.count_ones() as u8;
            let page = line * LINE / PAGE;
            let beside = || {
                let pages = set.iter().map(|(line, _)| line * LINE / PAGE);
                pages.filter(|other| *other == page).count()
            };
            let translation = self.port.translation.as_mut()?;
            if translation.admit(line * LINE, write, count, beside, moment, self.outbox) {
                translated.push(line, sectors);
                continue;
            }
            access.transaction = self.transaction(access.transaction, access);
            deferred += 1;
            let waits = self.deferred(line, sectors, write, access);
            let translation = self.port.translation.as_mut()?;
            translation.defer(page, waits, moment, self.outbox);
        }
        if deferred > 0 {
            self.expect(access.transaction, deferred);
        }
        Some((translated, deferred))
    }

    fn deferred(&self, line: u64, sectors: u8, write: bool, access: &Access) -> Deferred {
        let transaction = access.transaction;
        if write {
            Deferred::Store {
                line,
                sectors,
                partial: self.port.partial_sectors(line, access.partial),
                transaction,
            }
        } else {
            Deferred::Load(DeferredLoad {
                line,
                sectors,
                transaction,
                bypass: access.manner == Manner::LoadBypass,
            })
        }
    }
}
