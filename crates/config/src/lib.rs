//! Layered TOML into typed structs; unknown keys refused.
