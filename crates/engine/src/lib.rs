//! Partitions, links, clock domains, epochs, worker threads, save and load.
