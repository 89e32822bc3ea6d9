//! Programs in PTX, from text to results, in both modes.

use std::sync::Arc;

use crate::common::*;
use lockstep_gpu::{Launch, Mode};

const MODES: [Mode; 2] = [Mode::Functional, Mode::Timing];

/// Runs `kernel(out)` and gives the words it wrote.
fn check(body: &str, grid: u32, block: u32, expected: &[u32]) {
    let text = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n\
         .visible .entry test(.param .u64 out) {{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n\
         ld.param.u64 %rd1, [out];\n\
         mov.u32 %r1, %tid.x;\n\
         mov.u32 %r2, %ctaid.x;\n\
         {body}\nret;\n}}\n"
    );
    let image = lockstep_frontend::ptx::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let module = Arc::new(image.link(&[]).unwrap_or_else(|error| panic!("{error}")));
    for mode in MODES {
        let mut gpu = gpu(&small(3), mode);
        let mut launch = Launch::new(&module, "test", [grid, 1, 1], [block, 1, 1]).unwrap();
        launch.arguments = BASE.to_le_bytes().to_vec();
        let id = gpu.launch(launch).unwrap();
        if let Err(error) = gpu.run_until_complete(id) {
            panic!("{mode:?}: {error}");
        }
        assert_eq!(words(&gpu, BASE, expected.len()), expected, "{mode:?}");
    }
}

#[test]
fn lanes_take_a_lock_in_shared_memory_from_each_other() {
    check(
        ".shared .b32 lock;\n.shared .b32 count;\n\
         setp.ne.u32 %p1, %r1, 0;\n\
         @%p1 bra ready;\n\
         mov.u32 %r3, 0;\n\
         st.shared.u32 [lock], %r3;\n\
         st.shared.u32 [count], %r3;\n\
         ready:\n\
         bar.sync 0;\n\
         again:\n\
         atom.shared.cas.b32 %r4, [lock], 0, 1;\n\
         setp.ne.u32 %p2, %r4, 0;\n\
         @%p2 bra again;\n\
         membar.cta;\n\
         ld.volatile.shared.u32 %r5, [count];\n\
         add.u32 %r5, %r5, 1;\n\
         st.volatile.shared.u32 [count], %r5;\n\
         membar.cta;\n\
         atom.shared.exch.b32 %r6, [lock], 0;\n\
         bar.sync 0;\n\
         @%p1 bra done;\n\
         ld.shared.u32 %r7, [count];\n\
         st.global.u32 [%rd1], %r7;\n\
         done:",
        1,
        96,
        &[96],
    );
}

#[test]
fn a_float_sum_over_blocks_has_one_order() {
    check(
        "cvt.rn.f32.u32 %r3, %r1;\n\
         red.global.add.f32 [%rd1], %r3;\n\
         red.relaxed.gpu.global.add.u32 [%rd1+4], 1;\n\
         atom.global.max.u32 %r4, [%rd1+8], %r1;",
        4,
        64,
        &[(4.0f32 * 63.0 * 32.0).to_bits(), 256, 63],
    );
}

#[test]
fn the_last_block_adds_up_what_the_others_stored() {
    // As CUDA's threadFenceReduction does: store, fence, count, and whoever counts last reads.
    check(
        "setp.ne.u32 %p1, %r1, 0;\n\
         @%p1 bra done;\n\
         add.u32 %r3, %r2, 1;\n\
         mul.wide.u32 %rd2, %r2, 4;\n\
         add.u64 %rd3, %rd1, %rd2;\n\
         st.global.u32 [%rd3+64], %r3;\n\
         membar.gl;\n\
         atom.global.add.u32 %r4, [%rd1+4], 1;\n\
         mov.u32 %r5, %nctaid.x;\n\
         sub.u32 %r6, %r5, 1;\n\
         setp.ne.u32 %p2, %r4, %r6;\n\
         @%p2 bra done;\n\
         mov.u32 %r7, 0;\n\
         mov.u32 %r8, 0;\n\
         mov.u64 %rd4, %rd1;\n\
         sum:\n\
         ld.global.u32 %r9, [%rd4+64];\n\
         add.u32 %r8, %r8, %r9;\n\
         add.u64 %rd4, %rd4, 4;\n\
         add.u32 %r7, %r7, 1;\n\
         setp.lt.u32 %p3, %r7, %r5;\n\
         @%p3 bra sum;\n\
         st.global.u32 [%rd1], %r8;\n\
         done:",
        20,
        64,
        &[210, 20],
    );
}

/// Every thread adds 1 to the lower and 3 to the upper half of a counter, both or neither; a last
/// exchange says what was there.
fn count_in_128_bits(space: &str, counter: &str) -> String {
    format!(
        ".reg .b128 %q<4>;\n\
         mov.u64 %rd2, 0;\n\
         mov.u64 %rd3, 0;\n\
         again:\n\
         add.u64 %rd4, %rd2, 1;\n\
         add.u64 %rd5, %rd3, 3;\n\
         mov.b128 %q1, {{%rd2, %rd3}};\n\
         mov.b128 %q2, {{%rd4, %rd5}};\n\
         atom.{space}.cas.b128 %q3, [{counter}], %q1, %q2;\n\
         mov.b128 {{%rd6, %rd7}}, %q3;\n\
         setp.ne.u64 %p1, %rd6, %rd2;\n\
         setp.ne.u64 %p2, %rd7, %rd3;\n\
         or.pred %p1, %p1, %p2;\n\
         mov.u64 %rd2, %rd6;\n\
         mov.u64 %rd3, %rd7;\n\
         @%p1 bra again;\n"
    )
}

#[test]
fn a_counter_of_128_bits_in_global_memory_is_never_torn() {
    let body = count_in_128_bits("global", "%rd1+32");
    check(&body, 3, 40, &[0, 0, 0, 0, 0, 0, 0, 0, 120, 0, 360, 0]);
}

#[test]
fn a_counter_of_128_bits_in_shared_memory_is_never_torn() {
    let count = count_in_128_bits("shared", "counter");
    let body = format!(
        ".shared .align 16 .b8 counter[16];\n\
         setp.ne.u32 %p3, %r1, 0;\n\
         @%p3 bra ready;\n\
         mov.u64 %rd8, 0;\n\
         st.shared.v2.u64 [counter], {{%rd8, %rd8}};\n\
         ready:\n\
         bar.sync 0;\n\
         {count}\
         bar.sync 0;\n\
         @%p3 bra done;\n\
         atom.shared.exch.b128 %q3, [counter], %q1;\n\
         mov.b128 {{%rd6, %rd7}}, %q3;\n\
         st.global.v2.u64 [%rd1], {{%rd6, %rd7}};\n\
         done:"
    );
    check(&body, 1, 70, &[70, 0, 210, 0]);
}

/// Lanes that shuffle in both arms of a branch see each other on a GPU; here each arm would be alone.
#[test]
fn a_shuffle_at_two_places_is_refused() {
    let text = ".version 7.8\n.target sm_80\n.address_size 64\n\
         .visible .entry test(.param .u64 out) {\n\
         .reg .pred %p<2>;\n.reg .b32 %r<4>;\n\
         mov.u32 %r1, %tid.x;\n\
         setp.lt.u32 %p1, %r1, 7;\n\
         @%p1 bra few;\n\
         shfl.sync.idx.b32 %r2, %r1, 3, 31, -1;\n\
         bra.uni done;\n\
         few:\n\
         shfl.sync.idx.b32 %r3, %r1, 9, 31, -1;\n\
         done:\n\
         ret;\n}\n";
    let image = lockstep_frontend::ptx::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let module = Arc::new(image.link(&[]).unwrap_or_else(|error| panic!("{error}")));
    for mode in MODES {
        let mut gpu = gpu(&small(3), mode);
        let mut launch = Launch::new(&module, "test", [1, 1, 1], [32, 1, 1]).unwrap();
        launch.arguments = BASE.to_le_bytes().to_vec();
        let id = gpu.launch(launch).unwrap();
        let error = gpu.run_until_complete(id).unwrap_err().to_string();
        assert!(error.contains("at two places"), "{mode:?}: {error}");
    }
}
