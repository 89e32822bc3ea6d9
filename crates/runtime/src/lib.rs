//! What CUDA calls mean, without a C ABI.
