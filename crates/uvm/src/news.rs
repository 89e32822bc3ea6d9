//! What the GMMUs of a node and the directory of its pages say to each other.
//!
//! GMMUs tell [`News`]; the directory answers with [`Order`]s, and with [`Carry`]s for the links
//! between GPUs. Both are exchanged when the GPUs of the node meet.

use serde::{Deserialize, Serialize};

use crate::page_set::PageSet;

/// A claim of a GPU: whose it is, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClaimId {
    /// The GPU.
    pub gpu: u32,
    /// Its number among those of the GPU.
    pub number: u64,
}

/// What the GMMU of a GPU tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum News {
    /// It has frames for pages and wants them.
    Wanted {
        /// Number of the claim.
        claim: u64,
        /// First page of the tree.
        tree: u64,
        /// Pages of it.
        pages: PageSet,
        /// Those that are to be written.
        written: PageSet,
    },
    /// Pages that somebody else claimed are no longer mapped here.
    Given {
        /// Whose claim it is.
        by: ClaimId,
        /// First page of the tree.
        tree: u64,
        /// Pages of it.
        pages: PageSet,
        /// Those that were here; the others had left before.
        had: PageSet,
    },
    /// Pages are no longer mapped here and on their way to the host.
    Leaving {
        /// First page of the tree.
        tree: u64,
        /// Pages of it.
        pages: PageSet,
    },
    /// They have come to the host.
    Left {
        /// First page of the tree.
        tree: u64,
        /// Pages of it.
        pages: PageSet,
    },
    /// A claim is given up, because the kernels that wanted its pages are gone.
    GivenUp {
        /// Number of the claim.
        claim: u64,
        /// First page of the tree.
        tree: u64,
        /// Pages that have not come.
        pages: PageSet,
    },
}

/// Where granted pages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// From the host, over its link.
    Host,
    /// From nowhere: nobody has touched them, and they are filled with zeros.
    Zeros,
    /// From nowhere: a copy that was read is written from now on.
    Own,
}

/// What the directory tells the GMMU of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Pages of a claim may come.
    Granted {
        /// Number of the claim.
        claim: u64,
        /// Pages of it.
        pages: PageSet,
        /// Where they come from.
        source: Source,
        /// Whether others have copies: then they are not to be written.
        shared: bool,
    },
    /// Pages of a claim have come from another GPU.
    Arrived {
        /// Number of the claim.
        claim: u64,
        /// Pages of it.
        pages: PageSet,
        /// Whether others have copies: then they are not to be written.
        shared: bool,
        /// Those that the host has no copy of.
        unsaved: PageSet,
    },
    /// Another GPU claims pages: they are to be unmapped.
    Recall {
        /// Whose claim it is.
        by: ClaimId,
        /// First page of the tree.
        tree: u64,
        /// Pages of it.
        pages: PageSet,
    },
    /// Another GPU gets copies of pages: they are not to be written without asking.
    Share {
        /// First page of the tree.
        tree: u64,
        /// Pages of it.
        pages: PageSet,
    },
}

/// Pages that go from one GPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carry {
    /// Number by which its end is told.
    pub number: u64,
    /// The GPU that has them.
    pub from: u32,
    /// The GPU that gets them.
    pub to: u32,
    /// Bytes.
    pub bytes: u64,
}

/// Where pages are, as far as the other GPUs care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The GPU.
    pub gpu: u32,
    /// First page of the tree.
    pub tree: u64,
    /// Pages of it.
    pub pages: PageSet,
    /// Whether it has them now, or no longer.
    pub here: bool,
}
