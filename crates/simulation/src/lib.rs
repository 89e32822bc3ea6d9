//! One run, from description to results.
