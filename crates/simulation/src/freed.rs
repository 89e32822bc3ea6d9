//! What memory held when it was freed, page by page.
//!
//! A page is hashed by itself, so several threads can hash many of them; the digests are put together
//! in the order of addresses, however many threads there were.

use std::ops::Range;

use lockstep_gpu::Contents;
use lockstep_gpu::memory::reads_zero;
use lockstep_stats::Digest;

/// Pages that a thread must have to hash to be worth starting.
const WORTH_A_THREAD: usize = 96;

/// The digest of each of these parts of pages, none for those that read zero.
pub(crate) fn digests(
    contents: &Contents,
    parts: &[Range<u64>],
    threads: usize,
) -> Vec<Option<Digest>> {
    let mut found = vec![None; parts.len()];
    let threads = (parts.len() / WORTH_A_THREAD).clamp(1, threads.max(1));
    let each = parts.len().div_ceil(threads).max(1);
    let mut shares = parts.chunks(each).zip(found.chunks_mut(each));
    let first = shares.next();
    std::thread::scope(|scope| {
        for (parts, found) in shares {
            scope.spawn(move || fill(contents, parts, found));
        }
        if let Some((parts, found)) = first {
            fill(contents, parts, found);
        }
    });
    found
}

fn fill(contents: &Contents, parts: &[Range<u64>], found: &mut [Option<Digest>]) {
    let mut bytes = Vec::new();
    for (part, found) in parts.iter().zip(found) {
        bytes.resize((part.end - part.start) as usize, 0);
        contents.read(part.start, &mut bytes);
        *found = (!reads_zero(&bytes)).then(|| Digest::of_page(&bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_find_what_one_finds() {
        const PAGE: u64 = 4096;
        let contents = Contents::anonymous(0x10_0000, 1024 * PAGE).unwrap();
        for page in (0..1024).step_by(3) {
            contents.write(0x10_0000 + page * PAGE + page, &[page as u8 | 1]);
        }
        let parts: Vec<_> = (0..1024u64)
            .map(|page| 0x10_0000 + page * PAGE..0x10_0000 + page * PAGE + PAGE - page % 2)
            .collect();
        let alone = digests(&contents, &parts, 1);
        assert_eq!(alone.iter().flatten().count(), 342);
        assert_eq!(alone, digests(&contents, &parts, 5));
        assert!(digests(&contents, &[], 5).is_empty());
    }
}
