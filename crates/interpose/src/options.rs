//! Takes options of calls as the table of the protocol says: obeyed, refused, or accepted and noted
//! for the report of the run.

use crate::call::note;
use lockstep_protocol::options::{self, CudaOption, Group, OPTIONS, Treatment};
use lockstep_protocol::{CuResult, UnsupportedManner};
use std::sync::atomic::{AtomicBool, Ordering};

/// Which rows of the table have been noted: a program may use an option with every launch.
static NOTED: [AtomicBool; OPTIONS.len()] = [const { AtomicBool::new(false) }; OPTIONS.len()];

/// Takes an option that a call was given; what the table does not have is an invalid value.
pub fn accept(group: Group, number: u32) -> Result<(), CuResult> {
    let option = options::find(group, number).ok_or(CuResult::INVALID_VALUE)?;
    match option.treatment {
        Treatment::Obeyed(_) => Ok(()),
        Treatment::Listed => {
            note_once(option, UnsupportedManner::Accepted);
            Ok(())
        }
        Treatment::Refused(code) => {
            note_once(option, UnsupportedManner::Option);
            Err(code)
        }
    }
}

/// Takes every bit of a word of flags that is set.
pub fn accept_flags(group: Group, flags: u32) -> Result<(), CuResult> {
    let bits = (0..u32::BITS).map(|bit| 1 << bit);
    let known = |bit: u32| options::find(group, bit).is_some();
    // An unknown bit makes the call invalid, whatever the others would say.
    if !bits.clone().all(|bit| flags & bit == 0 || known(bit)) {
        return Err(CuResult::INVALID_VALUE);
    }
    bits.filter(|bit| flags & bit != 0)
        .try_for_each(|bit| accept(group, bit))
}

fn note_once(option: &CudaOption, manner: UnsupportedManner) {
    let key = |option: &CudaOption| (option.group, option.number);
    let Some(row) = OPTIONS.iter().position(|known| key(known) == key(option)) else {
        return;
    };
    if !NOTED[row].swap(true, Ordering::Relaxed) {
        note(option.name, manner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_taken_bit_by_bit_and_unknown_ones_refuse_the_call() {
        assert_eq!(accept_flags(Group::HostAllocation, 0), Ok(()));
        assert_eq!(accept_flags(Group::HostAllocation, 7), Ok(()));
        assert_eq!(
            accept_flags(Group::HostAllocation, 0x80),
            Err(CuResult::INVALID_VALUE)
        );
        assert_eq!(
            accept_flags(Group::HostRegistration, 4 | 0x80),
            Err(CuResult::INVALID_VALUE)
        );
    }

    #[test]
    fn an_option_that_is_refused_gives_the_code_of_the_table() {
        assert_eq!(accept(Group::Limit, 3), Err(CuResult::UNSUPPORTED_LIMIT));
        assert_eq!(accept(Group::Limit, 77), Err(CuResult::INVALID_VALUE));
    }
}
