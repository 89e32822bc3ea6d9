//! Handles as the program sees them: pointers that point nowhere.
//!
//! Each carries its kind above bit 48, where no address of a program is, so that a kernel
//! can be told from a function and from the address of a host stub.

/// What a handle is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    /// `CUcontext`.
    Context = 0x10,
    /// `CUmodule`.
    Module = 0x11,
    /// `CUfunction`.
    Function = 0x12,
    /// `CUkernel`.
    Kernel = 0x13,
    /// `CUlibrary`.
    Library = 0x14,
    /// `CUstream`.
    Stream = 0x15,
    /// `CUevent`.
    Event = 0x16,
    /// `CUmemoryPool`.
    Pool = 0x17,
    /// `CUgraph`.
    Graph = 0x18,
    /// `CUgraphNode`.
    GraphNode = 0x19,
    /// `CUgraphExec`.
    GraphExec = 0x1a,
    /// `CUuserObject`.
    UserObject = 0x1b,
    /// `CUarray`.
    Array = 0x1c,
    /// `CUmipmappedArray`.
    MipmappedArray = 0x1d,
    /// `CUmemGenericAllocationHandle`.
    Physical = 0x1e,
    /// `CUlinkState`.
    Link = 0x1f,
    /// `CUtexref`.
    TextureReference = 0x20,
}

const SHIFT: u32 = 48;

/// The handle for a number.
pub fn encode(kind: Kind, number: u64) -> usize {
    ((kind as usize) << SHIFT) | (number as usize & ((1 << SHIFT) - 1))
}

/// The number of a handle, if it is of this kind.
pub fn decode(kind: Kind, handle: usize) -> Option<u64> {
    (handle >> SHIFT == kind as usize).then_some((handle & ((1 << SHIFT) - 1)) as u64)
}
