//! Samples a real GPU inside an unmodified program.
