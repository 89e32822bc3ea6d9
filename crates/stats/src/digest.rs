//! Fingerprints: equal for equal runs, on every host.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A fingerprint of 256 bits, printed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Collects what a digest is of. Everything carries its length, so that no two different
/// sequences look alike.
#[derive(Clone, Debug)]
pub struct Hasher {
    hasher: blake3::Hasher,
    /// What was added and not hashed yet: many kibibytes at once take a fraction of the time.
    waiting: Vec<u8>,
}

/// Bytes that are hashed at once.
const AT_ONCE: usize = 64 << 10;

impl Hasher {
    /// Starts a digest of one kind of thing; kinds never collide.
    pub fn new(kind: &str) -> Self {
        let mut hasher = Self {
            hasher: blake3::Hasher::new(),
            waiting: Vec::new(),
        };
        hasher.text(kind);
        hasher
    }

    fn add(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= AT_ONCE {
            self.hasher.update(&self.waiting);
            self.waiting.clear();
        }
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) {
        self.add(&number.to_le_bytes());
    }

    /// Adds bytes, with their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.add(bytes);
    }

    /// Adds text, with its length.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Adds another digest.
    pub fn digest(&mut self, digest: Digest) {
        self.add(&digest.0);
    }

    /// The digest of all that was added.
    pub fn finish(&self) -> Digest {
        let mut hasher = self.hasher.clone();
        hasher.update(&self.waiting);
        Digest(*hasher.finalize().as_bytes())
    }
}

impl Digest {
    /// The digest of some bytes, such as the contents of a page.
    pub fn of_bytes(kind: &str, bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(kind);
        hasher.bytes(bytes);
        hasher.finish()
    }

    /// The digest of a page of memory: as [`Self::of_bytes`] without a kind, several times as fast,
    /// because nothing stands in front of the bytes.
    pub fn of_page(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a digest.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("a digest has 64 hexadecimal digits; found {found} characters{}", if *.found == 64 { ", not all of them digits" } else { "" })]
pub struct DigestError {
    found: usize,
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let wrong = || DigestError {
            found: text.chars().count(),
        };
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let digits = &text[2 * index..2 * index + 2];
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?
                .parse()
                .map_err(serde::de::Error::custom)
        } else {
            <[u8; 32]>::deserialize(deserializer).map(Self)
        }
    }
}

/// Digests of components by path ("gpu 0/sm/17"), and of everything above them.
///
/// Order of insertion never shows. When two trees differ, [`DigestTree::differences`] says in
/// which components.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestTree {
    leaves: BTreeMap<String, Digest>,
}

/// A component whose digests differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path of the component.
    pub path: String,
    /// Its digest in the first tree, if it is there.
    pub first: Option<Digest>,
    /// Its digest in the second tree, if it is there.
    pub second: Option<Digest>,
}

impl DigestTree {
    /// Adds a component.
    ///
    /// # Panics
    /// If the path is there already: two components would share one name.
    pub fn insert(&mut self, path: impl Into<String>, digest: Digest) {
        let path = path.into();
        assert!(
            !self.leaves.contains_key(&path),
            "two components are called `{path}`"
        );
        self.leaves.insert(path, digest);
    }

    /// Every component with its digest, ordered by path.
    pub fn leaves(&self) -> impl Iterator<Item = (&str, Digest)> {
        self.leaves
            .iter()
            .map(|(path, &digest)| (path.as_str(), digest))
    }

    /// The digest of everything.
    pub fn root(&self) -> Digest {
        let mut leaves: Vec<_> = self
            .leaves()
            .map(|(path, digest)| (split(path), digest))
            .collect();
        leaves.sort_unstable();
        Self::node(&leaves, 0)
    }

    /// The digest of a node whose leaves, in their order, share `depth` parts of their paths.
    fn node(mut leaves: &[(Vec<&str>, Digest)], depth: usize) -> Digest {
        let mut hasher = Hasher::new("tree");
        while let Some((path, digest)) = leaves.first() {
            let Some(part) = path.get(depth) else {
                // A component that has components below it counts itself first.
                hasher.text("");
                hasher.digest(*digest);
                leaves = &leaves[1..];
                continue;
            };
            let same = leaves
                .iter()
                .take_while(|(path, _)| path.get(depth) == Some(part))
                .count();
            hasher.text(part);
            hasher.digest(Self::node(&leaves[..same], depth + 1));
            leaves = &leaves[same..];
        }
        hasher.finish()
    }

    /// The components in which two trees differ, ordered by path.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut paths: Vec<&String> = self.leaves.keys().chain(other.leaves.keys()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
            .into_iter()
            .map(|path| Difference {
                path: path.clone(),
                first: self.leaves.get(path).copied(),
                second: other.leaves.get(path).copied(),
            })
            .filter(|difference| difference.first != difference.second)
            .collect()
    }
}

fn split(path: &str) -> Vec<&str> {
    path.split('/').collect()
}
