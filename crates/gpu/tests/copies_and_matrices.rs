//! Accesses that move more than one value at a time: copies to shared memory, matrices, vectors.

use crate::common::*;
use lockstep_gpu::Mode;
use lockstep_isa::Operand;
use lockstep_isa::memory::{Action, AtomicOperation, AtomicType, Element, Space};

const MODES: [Mode; 2] = [Mode::Functional, Mode::Timing];

#[test]
fn copies_to_shared_memory_fill_the_rest_with_zero() {
    for mode in MODES {
        let mut gpu = gpu(&small(1), mode);
        let source: Vec<u8> = (0..512u32).map(|n| (n * 7 + 1) as u8).collect();
        gpu.contents().write(BASE, &source);
        let mut k = Assembler::new();
        k.shared_bytes = 512;
        let [lane, offset, size] = k.regs();
        let words: [R; 4] = k.regs();
        k.lane(lane);
        k.shl(offset, lane, imm(4));
        // Lane n copies n mod 17 bytes.
        k.mov(size, lane);
        let p = k.pred();
        k.less(p, lane, imm(17));
        k.guarded(p, false, |k| k.sub(size, lane, imm(17)));
        let mut copy = Assembler::operation(
            Space::Global,
            Action::CopyToShared,
            BASE,
            offset.into(),
            WEAK,
        );
        copy.element = Element::B128;
        copy.values[0] = offset.into();
        copy.values[1] = size.into();
        k.memory(copy);
        k.access(Action::Load, Space::Shared, 0, offset, Element::B32, &words);
        k.access(
            Action::Store,
            Space::Global,
            BASE + 4096,
            offset,
            Element::B32,
            &words,
        );
        run(&mut gpu, &k.finish(), 1, 32, &[]);
        let mut found = vec![0; 512];
        gpu.contents().read(BASE + 4096, &mut found);
        for (at, byte) in found.iter().enumerate() {
            let expected = if at % 16 < at / 16 % 17 {
                source[at]
            } else {
                0
            };
            assert_eq!(*byte, expected, "{mode:?}, byte {at}");
        }
    }
}

#[test]
fn a_copy_comes_after_a_reduction_to_its_source() {
    for mode in MODES {
        let mut gpu = gpu(&small(1), mode);
        let mut k = Assembler::new();
        k.shared_bytes = 64;
        let value = k.reg();
        let add = AtomicOperation::Add;
        k.atomic(
            None,
            Space::Global,
            add,
            AtomicType::U32,
            BASE,
            imm(4),
            &[imm(1)],
            RELAXED,
        );
        let mut copy =
            Assembler::operation(Space::Global, Action::CopyToShared, BASE, imm(4), WEAK);
        copy.values[0] = imm(8);
        k.memory(copy);
        k.load(value, Space::Shared, 0, imm(8), WEAK);
        k.store(Space::Global, BASE + 64, imm(0), value, WEAK);
        run(&mut gpu, &k.finish(), 1, 32, &[]);
        assert_eq!(word(&gpu, BASE + 64), 32, "{mode:?}");
    }
}

/// Loads four matrices, and stores them again elsewhere; each maybe transposed.
fn matrices(mode: Mode, load_transposed: bool, store_transposed: bool) -> Vec<u16> {
    let mut gpu = gpu(&small(1), mode);
    let mut k = Assembler::new();
    k.shared_bytes = 1024;
    let [lane, offset, row, out] = k.regs();
    let values: [R; 4] = k.regs();
    k.lane(lane);
    // Every lane writes 16 bytes: the row of a matrix, elements numbered from 0.
    k.shl(offset, lane, imm(4));
    for (part, value) in values.iter().enumerate() {
        k.mul(*value, lane, imm(0x8_0008));
        k.add(
            *value,
            *value,
            imm((2 * part as u64) | ((2 * part as u64 + 1) << 16)),
        );
    }
    k.access(
        Action::Store,
        Space::Shared,
        0,
        offset,
        Element::B32,
        &values,
    );
    let mut load = Assembler::operation(
        Space::Shared,
        Action::LoadMatrix {
            matrices: 4,
            transpose: load_transposed,
        },
        0,
        offset.into(),
        WEAK,
    );
    load.data = values.map(|value| Some(value.0));
    k.memory(load);
    let mut store = Assembler::operation(
        Space::Shared,
        Action::StoreMatrix {
            matrices: 4,
            transpose: store_transposed,
        },
        512,
        offset.into(),
        WEAK,
    );
    store.values = values.map(Operand::from);
    k.memory(store);
    k.mov(row, offset);
    k.access(Action::Load, Space::Shared, 512, row, Element::B32, &values);
    k.mov(out, offset);
    k.access(
        Action::Store,
        Space::Global,
        BASE,
        out,
        Element::B32,
        &values,
    );
    run(&mut gpu, &k.finish(), 1, 32, &[]);
    words(&gpu, BASE, 128)
        .into_iter()
        .flat_map(|word| [word as u16, (word >> 16) as u16])
        .collect()
}

#[test]
fn matrices_are_spread_over_lanes_and_gathered_again() {
    let straight: Vec<u16> = (0..256).collect();
    let transposed: Vec<u16> = (0..256)
        .map(|at| {
            let (matrix, row, column) = (at / 64, at / 8 % 8, at % 8);
            matrix * 64 + column * 8 + row
        })
        .collect();
    for mode in MODES {
        assert_eq!(matrices(mode, false, false), straight);
        assert_eq!(matrices(mode, true, true), straight);
        assert_eq!(matrices(mode, true, false), transposed);
        assert_eq!(matrices(mode, false, true), transposed);
    }
}

#[test]
fn vector_reductions_add_element_by_element() {
    for mode in MODES {
        let mut gpu = gpu(&small(2), mode);
        let mut k = Assembler::new();
        let values: [R; 4] = k.regs();
        let lane = k.reg();
        k.lane(lane);
        k.and(lane, lane, imm(1));
        k.shl(lane, lane, imm(4));
        for (element, value) in values.iter().enumerate() {
            k.mov(*value, imm(u64::from((element as f32 + 0.5).to_bits())));
        }
        let kind = AtomicType::F32 { flush: false };
        let mut add = Assembler::operation(
            Space::Global,
            Action::Reduce(AtomicOperation::Add, kind),
            BASE,
            lane.into(),
            RELAXED,
        );
        add.elements = 4;
        add.values = values.map(Operand::from);
        k.memory(add);
        run(&mut gpu, &k.finish(), 3, 32, &[]);
        let found: Vec<f32> = words(&gpu, BASE, 8)
            .into_iter()
            .map(f32::from_bits)
            .collect();
        assert_eq!(
            found,
            [24., 72., 120., 168., 24., 72., 120., 168.],
            "{mode:?}"
        );
    }
}
