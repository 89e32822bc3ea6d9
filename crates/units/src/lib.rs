//! Bytes, cycles, frequencies, times and addresses: parsed, printed, never mixed.
