//! The hardware: dispatcher, SMs, interconnect, L2 slices, memory.
