//! Traces of kernels.

use crate::corpus::Corpus;
use crate::mutate;
use crate::random::Random;
use lockstep_trace::scan::scan_trace;
use lockstep_trace::{KernelTrace, module_of};
use std::path::Path;
use std::sync::Arc;

/// A small trace with every address mode, a copy, a branch and a barrier.
const TRACE: &str = "-kernel name = k\n-kernel id = 1\n-grid dim = (2,1,1)\n-block dim = (64,1,1)\n-shmem = 1024\n-nregs = 32\n\
-binary version = 90\n-cuda stream id = 0\n-shmem base_addr = 0x00007f0001000000\n-local mem base_addr = 0x00007f0002000000\n\
-nvbit version = 1.7\n-accelsim tracer version = 5\n-enable lineinfo = 0\n\n#traces format = PC mask\n\n#BEGIN_TB\n\n\
thread block = 0,0,0\n\nwarp = 0\ninsts = 6\n0000 ffffffff 1 R1 IMAD.MOV.U32 2 R255 R255 0 0\n\
0010 ffffffff 1 R2 LDG.E.64 1 R4 8 1 0x7e0000000000 8 0\n0020 00000005 0 STG.E 2 R4 R2 4 0 0x7e0000000000 0x7e0000000010 0\n\
0030 00000007 1 R8 LD.E 1 R6 4 2 0x7f0001000000 4 8 0\n0040 ffffffff 0 BAR.SYNC.DEFER_BLOCKING 0 0 0\n0050 ffffffff 0 EXIT 0 0 0\n\n\
warp = 1\ninsts = 1\n0050 ffffffff 0 EXIT 0 0 0\n\n#END_TB\n\n#BEGIN_TB\n\nthread block = 1,0,0\n\nwarp = 0\ninsts = 3\n\
0060 0000000f 0 LDGSTS.E.128 2 R3 R4 16 1 0x400 16 0\n0060 0000000f 0 LDGSTS.E.128 2 R3 R4 16 1 0x7e0000000000 16 0\n\
0050 ffffffff 0 EXIT 0 0 0\n\n#END_TB\n";

pub fn make(_: &Corpus, random: &mut Random) -> Vec<u8> {
    let mut input = TRACE.as_bytes().to_vec();
    mutate::text(random, &mut input, TRACE.as_bytes());
    input
}

pub fn run(bytes: &[u8]) {
    for name in [
        "k.traceg",
        "k.trace",
        "k.traceg.xz",
        "k.traceg.gz",
        "k.traceg.zst",
    ] {
        let Ok(trace) = KernelTrace::of_bytes(name, bytes.to_vec()) else {
            continue;
        };
        if let Ok(scan) = scan_trace(trace) {
            let _ = module_of(Path::new(name), scan, Arc::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_a_good_trace() {
        let trace = KernelTrace::of_bytes("k.traceg", TRACE.into()).unwrap();
        let scan = scan_trace(trace).unwrap();
        assert_eq!(scan.instructions, 9);
        assert!(module_of(Path::new("k.traceg"), scan, Arc::default()).is_ok());
    }
}
