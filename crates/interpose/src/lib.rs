//! What is loaded into the CUDA program.
