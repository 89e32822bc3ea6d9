//! Bytes in, programs out: PTX and SASS.
