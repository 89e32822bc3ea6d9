//! Pure meanings, written once: PTX and SASS tables bind spelling and encoding to them.
