//! What a policy chooses among.

/// Warp slots, one bit each.
pub type WarpMask = u64;

/// When each warp slot was filled: smaller is older.
pub type Ages = [u64; 64];
