//! Wire and shared-memory layouts between a CUDA program and the simulator.
