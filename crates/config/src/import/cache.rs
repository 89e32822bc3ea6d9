//! GPGPU-Sim's one-line description of a cache.
//!
//! `S:32:128:24,L:B:m:L:P,A:192:4,32:0,32`: kind (`N`ormal or `S`ectored; older files have none),
//! sets, line, ways; replacement, write policy, allocation, write allocation and, in newer files, how
//! sets are indexed; MSHRs as kind, entries and merged requests; the miss queue and what follows it.

/// A cache as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cache {
    /// Lines are filled in sectors.
    pub sectored: bool,
    /// Sets.
    pub sets: u64,
    /// Bytes of a line.
    pub line: u64,
    /// Lines of a set.
    pub ways: u64,
    /// The letters of its policies, as they were written.
    pub policies: String,
    /// Lines whose misses can be outstanding.
    pub mshrs: u64,
    /// Requests for one of these lines, or 0 if it does not say.
    pub targets: u64,
    /// What follows the MSHRs, as it was written.
    pub rest: String,
}

impl Cache {
    /// Reads a description; nothing if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut groups = text.split(',');
        let mut shape: Vec<&str> = groups.next()?.split(':').collect();
        let sectored = match *shape.first()? {
            kind @ ("N" | "S") => {
                shape.remove(0);
                kind == "S"
            }
            _ => false,
        };
        let [sets, line, ways] = shape[..] else {
            return None;
        };
        let policies = groups.next()?;
        let mshrs: Vec<&str> = groups.next()?.split(':').collect();
        let cache = Self {
            sectored,
            sets: size(sets)?,
            line: size(line)?,
            ways: size(ways)?,
            policies: policies.into(),
            mshrs: size(mshrs.get(1)?)?,
            targets: mshrs.get(2).and_then(|text| size(text)).unwrap_or(0),
            rest: groups.collect::<Vec<_>>().join(","),
        };
        cache.bytes()?;
        Some(cache)
    }

    /// Data that it holds; nothing if that is no size.
    pub fn bytes(&self) -> Option<u64> {
        let bytes = self.sets.checked_mul(self.line)?.checked_mul(self.ways)?;
        (bytes <= 1 << 40).then_some(bytes)
    }
}

/// A number from 1 on.
fn size(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_read() {
        let cache = Cache::parse("S:32:128:24,L:B:m:L:P,A:192:4,32:0,32").unwrap();
        assert!(cache.sectored);
        assert_eq!(
            (cache.sets, cache.line, cache.ways, cache.mshrs),
            (32, 128, 24, 192)
        );
        assert_eq!(cache.targets, 4);
        assert_eq!(cache.bytes(), Some(96 << 10));
        assert_eq!(
            (cache.policies.as_str(), cache.rest.as_str()),
            ("L:B:m:L:P", "32:0,32")
        );
        let old = Cache::parse("64:128:6,L:L:m:N,A:32:8,8").unwrap();
        assert!(!old.sectored);
        assert_eq!(old.bytes(), Some(48 << 10));
        assert!(Cache::parse("N:4:128:256,L:R:m:N:L,T:512:8,128:2").is_some());
        assert!(Cache::parse("S:4:128:64,L:T:m:L:L,A:384:48,16:0,32").is_some());
    }

    #[test]
    fn what_is_no_cache_is_none() {
        for text in [
            "",
            "X",
            "none",
            "1:2",
            "0:128:4,L:L:m:N,A:1:1,1",
            "a:b:c,L,A:1",
            "4:128:4",
            "4:128:4,L:L:m:N",
            "99999999999:99999999999:4,L:L:m:N,A:1:1,1",
            "1:2:3:4,L,A:1:1,1",
        ] {
            assert_eq!(Cache::parse(text), None, "{text}");
        }
    }
}
