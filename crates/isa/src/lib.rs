//! Instructions: their meaning on 32 lanes, and what an SM sees of them.
