//! Names that the simulator gives to the objects it keeps for a CUDA program.
//!
//! They are plain numbers, never addresses; 0 is never given. The same number is never
//! given twice in one run, so a stale handle is recognised.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), " {}"), self.0)
            }
        }
    )*};
}

handles! {
    /// A context: primary or created.
    ContextHandle;
    /// A module loaded into one context.
    ModuleHandle;
    /// A kernel of a module.
    FunctionHandle;
    /// A stream that the program created.
    StreamHandle;
    /// An event.
    EventHandle;
    /// A graph that is ready for launching.
    GraphHandle;
    /// Physical memory without an address (`cuMemCreate`).
    PhysicalHandle;
}

/// The stream that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StreamName {
    /// The legacy default stream of the context; it waits for, and is waited for by, every
    /// stream of the context that was not created as non-blocking.
    Legacy,
    /// The default stream of the calling host thread (that is, of this connection) in the
    /// context. It behaves as a created blocking stream.
    PerThread,
    /// One that `StreamCreate` answered.
    Created(StreamHandle),
}
