//! What kernels compute, in both modes.

use crate::common::*;
use lockstep_gpu::Mode;
use lockstep_isa::instruction::BlockBarrierMode;
use lockstep_isa::memory::{Action, AtomicOperation, AtomicType, Element, Space};

const MODES: [Mode; 2] = [Mode::Functional, Mode::Timing];

#[test]
fn threads_store_their_index() {
    for mode in MODES {
        let mut gpu = gpu(&small(3), mode);
        let mut k = Assembler::new();
        let [thread, offset] = k.regs();
        k.thread(thread);
        k.shl(offset, thread, imm(2));
        k.store(Space::Global, BASE, offset, thread, WEAK);
        let record = run(&mut gpu, &k.finish(), 40, 100, &[]);
        assert_eq!(words(&gpu, BASE, 4000), (0..4000).collect::<Vec<_>>());
        assert_eq!(record.counters.warps_launched, 160);
        assert_eq!(record.counters.blocks_completed, 40);
        assert_eq!(record.counters.inst_executed, 160 * 4);
        assert_eq!(record.counters.thread_inst_executed, 4000 * 4);
        assert!(record.cycles() > 0);
    }
}

#[test]
fn a_warp_sees_its_own_stores_before_they_are_committed() {
    for mode in MODES {
        let mut gpu = gpu(&small(1), mode);
        let mut k = Assembler::new();
        let [lane, offset, value, sum] = k.regs();
        k.lane(lane);
        k.shl(offset, lane, imm(2));
        k.store(Space::Global, BASE, offset, lane, WEAK);
        k.load(value, Space::Global, BASE, offset, WEAK);
        k.add(sum, value, imm(1));
        k.store(Space::Global, BASE, offset, sum, WEAK);
        k.load(value, Space::Global, BASE, offset, WEAK);
        k.store(Space::Global, BASE + 4096, offset, value, WEAK);
        run(&mut gpu, &k.finish(), 1, 32, &[]);
        assert_eq!(words(&gpu, BASE + 4096, 32), (1..33).collect::<Vec<_>>());
    }
}

#[test]
fn every_width_round_trips_in_every_space() {
    let widths: [(Element, usize); 7] = [
        (Element::U8, 1),
        (Element::S8, 1),
        (Element::U16, 1),
        (Element::S16, 1),
        (Element::B32, 4),
        (Element::B32, 2),
        (Element::B32, 1),
    ];
    for mode in MODES {
        for space in [Space::Global, Space::Shared, Space::Local] {
            for (element, count) in widths {
                let mut gpu = gpu(&small(1), mode);
                let mut k = Assembler::new();
                k.shared_bytes = 8192;
                k.local_bytes = 1024;
                let base = if space == Space::Global { BASE } else { 0 };
                let [lane, offset, out] = k.regs();
                let values: Vec<R> = (0..count).map(|_| k.reg()).collect();
                let loaded: Vec<R> = (0..count).map(|_| k.reg()).collect();
                let bytes = element.bytes() * count as u32;
                k.lane(lane);
                k.mul(offset, lane, imm(bytes.into()));
                for (index, value) in values.iter().enumerate() {
                    k.mul(*value, lane, imm(0x0101_0193 + index as u64));
                    k.add(*value, *value, imm(0x80f0 + index as u64));
                }
                k.access(Action::Store, space, base, offset, element, &values);
                k.access(Action::Load, space, base, offset, element, &loaded);
                k.mul(out, lane, imm(4 * count as u64));
                for (index, value) in loaded.iter().enumerate() {
                    k.store(
                        Space::Global,
                        BASE + 65536 + 4 * index as u64,
                        out,
                        *value,
                        WEAK,
                    );
                }
                run(&mut gpu, &k.finish(), 1, 32, &[]);
                let expected: Vec<u32> = (0..32u32)
                    .flat_map(|lane| (0..count as u32).map(move |index| (lane, index)))
                    .map(|(lane, index)| {
                        let value = lane
                            .wrapping_mul(0x0101_0193 + index)
                            .wrapping_add(0x80f0 + index);
                        match element {
                            Element::U8 => value & 0xff,
                            Element::S8 => value as i8 as u32,
                            Element::U16 => value & 0xffff,
                            Element::S16 => value as i16 as u32,
                            _ => value,
                        }
                    })
                    .collect();
                assert_eq!(
                    words(&gpu, BASE + 65536, 32 * count),
                    expected,
                    "{mode:?} {space:?} {element:?} x {count}"
                );
            }
        }
    }
}

#[test]
fn atomics_add_up_across_sms() {
    for mode in MODES {
        let mut gpu = gpu(&small(4), mode);
        let mut k = Assembler::new();
        let [thread, slot, old] = k.regs();
        k.thread(thread);
        k.and(slot, thread, imm(7));
        k.shl(slot, slot, imm(2));
        let add = AtomicOperation::Add;
        k.atomic(
            None,
            Space::Global,
            add,
            AtomicType::U32,
            BASE,
            slot,
            &[imm(1)],
            RELAXED,
        );
        k.atomic(
            Some(old),
            Space::Global,
            add,
            AtomicType::U32,
            BASE + 64,
            imm(0),
            &[imm(1)],
            RELAXED,
        );
        k.shl(old, old, imm(2));
        k.store(Space::Global, BASE + 4096, old, thread, WEAK);
        run(&mut gpu, &k.finish(), 16, 64, &[]);
        assert_eq!(words(&gpu, BASE, 8), [128; 8]);
        assert_eq!(word(&gpu, BASE + 64), 1024);
        // Every ticket was drawn once.
        let mut drawn = words(&gpu, BASE + 4096, 1024);
        drawn.sort_unstable();
        assert_eq!(drawn, (0..1024).collect::<Vec<_>>());
    }
}

#[test]
fn shared_memory_and_barriers_transpose_a_tile() {
    for mode in MODES {
        let mut gpu = gpu(&small(2), mode);
        let mut k = Assembler::new();
        k.shared_bytes = 4096;
        let [thread, local, offset, row, column, value] = k.regs();
        k.thread(thread);
        k.and(local, thread, imm(1023));
        k.shl(offset, local, imm(2));
        k.store(Space::Shared, 0, offset, thread, WEAK);
        k.sync();
        k.shr(row, local, imm(5));
        k.and(column, local, imm(31));
        k.shl(column, column, imm(5));
        k.add(column, column, row);
        k.shl(column, column, imm(2));
        k.load(value, Space::Shared, 0, column, WEAK);
        k.shl(offset, thread, imm(2));
        k.store(Space::Global, BASE, offset, value, WEAK);
        run(&mut gpu, &k.finish(), 3, 1024, &[]);
        let found = words(&gpu, BASE, 3072);
        for (index, value) in found.iter().enumerate() {
            let (block, local) = (index / 1024, index % 1024);
            assert_eq!(
                *value as usize,
                block * 1024 + (local % 32) * 32 + local / 32
            );
        }
    }
}

#[test]
fn warps_that_have_ended_are_not_waited_for() {
    for mode in MODES {
        let mut gpu = gpu(&small(1), mode);
        let mut k = Assembler::new();
        let [warp, thread, offset] = k.regs();
        let odd = k.pred();
        k.warp(warp);
        k.and(warp, warp, imm(1));
        k.equal(odd, warp, imm(1));
        k.guarded(odd, true, |k| k.exit());
        k.sync();
        k.thread(thread);
        k.shl(offset, thread, imm(2));
        k.store(Space::Global, BASE, offset, imm(7), WEAK);
        run(&mut gpu, &k.finish(), 1, 128, &[]);
        let found = words(&gpu, BASE, 128);
        for (thread, value) in found.iter().enumerate() {
            assert_eq!(*value, if thread / 32 % 2 == 0 { 7 } else { 0 });
        }
    }
}

#[test]
fn lanes_that_came_apart_arrive_one_by_one() {
    for mode in MODES {
        let mut gpu = gpu(&small(1), mode);
        let mut k = Assembler::new();
        let [lane, thread, offset] = k.regs();
        let low = k.pred();
        let (other, join) = (k.label(), k.label());
        k.lane(lane);
        k.less(low, lane, imm(10));
        k.branch_if(low, true, other);
        k.sync();
        k.branch(join);
        k.place(other);
        k.sync();
        k.place(join);
        k.thread(thread);
        k.shl(offset, thread, imm(2));
        k.store(Space::Global, BASE, offset, imm(3), WEAK);
        run(&mut gpu, &k.finish(), 1, 96, &[]);
        assert_eq!(words(&gpu, BASE, 96), [3; 96]);
    }
}

#[test]
fn barriers_reduce_predicates() {
    for mode in MODES {
        let mut gpu = gpu(&small(1), mode);
        let mut k = Assembler::new();
        let [thread, offset, count] = k.regs();
        let [small, all, any] = [k.pred(), k.pred(), k.pred()];
        k.thread(thread);
        k.shl(offset, thread, imm(2));
        k.less(small, thread, imm(70));
        k.reduce(BlockBarrierMode::ReducePopulation, small, None, Some(count));
        k.reduce(BlockBarrierMode::ReduceAnd, small, Some(all), None);
        k.reduce(BlockBarrierMode::ReduceOr, small, Some(any), None);
        k.guarded(all, true, |k| k.add(count, count, imm(1000)));
        k.guarded(any, true, |k| k.add(count, count, imm(2000)));
        k.store(Space::Global, BASE, offset, count, WEAK);
        run(&mut gpu, &k.finish(), 1, 100, &[]);
        assert_eq!(words(&gpu, BASE, 100), [2070; 100]);
    }
}

#[test]
fn producers_arrive_and_consumers_wait() {
    for mode in MODES {
        let mut gpu = gpu(&small(1), mode);
        let mut k = Assembler::new();
        k.shared_bytes = 256;
        let [warp, lane, offset, value] = k.regs();
        let producer = k.pred();
        let (produce, end) = (k.label(), k.label());
        k.warp(warp);
        k.lane(lane);
        k.shl(offset, lane, imm(2));
        k.equal(producer, warp, imm(0));
        k.branch_if(producer, true, produce);
        k.barrier(BlockBarrierMode::Sync, imm(1), Some(64));
        k.load(value, Space::Shared, 0, offset, WEAK);
        k.store(Space::Global, BASE, offset, value, WEAK);
        k.branch(end);
        k.place(produce);
        k.store(Space::Shared, 0, offset, lane, WEAK);
        k.barrier(BlockBarrierMode::Arrive, imm(1), Some(64));
        k.place(end);
        run(&mut gpu, &k.finish(), 1, 64, &[]);
        assert_eq!(words(&gpu, BASE, 32), (0..32).collect::<Vec<_>>());
    }
}

#[test]
fn shared_atomics_are_performed_at_the_sm() {
    for mode in MODES {
        let mut gpu = gpu(&small(2), mode);
        let mut k = Assembler::new();
        k.shared_bytes = 64;
        let [old, thread, offset] = k.regs();
        k.atomic(
            Some(old),
            Space::Shared,
            AtomicOperation::Add,
            AtomicType::U32,
            0,
            imm(8),
            &[imm(1)],
            WEAK,
        );
        k.thread(thread);
        k.shl(offset, thread, imm(2));
        k.store(Space::Global, BASE, offset, old, WEAK);
        run(&mut gpu, &k.finish(), 2, 96, &[]);
        let mut found = words(&gpu, BASE, 192);
        found.sort_unstable();
        assert_eq!(found, (0..192).map(|n| n / 2).collect::<Vec<u32>>());
    }
}

#[test]
fn generic_addresses_find_their_space() {
    use lockstep_isa::memory::{LOCAL_WINDOW, SHARED_WINDOW};
    for mode in MODES {
        let mut gpu = gpu(&small(1), mode);
        let mut k = Assembler::new();
        k.shared_bytes = 1024;
        k.local_bytes = 64;
        let [lane, offset, value] = k.regs();
        k.lane(lane);
        k.shl(offset, lane, imm(2));
        k.store(Space::Generic, SHARED_WINDOW, offset, lane, WEAK);
        k.store(Space::Generic, LOCAL_WINDOW, imm(8), lane, WEAK);
        k.load(value, Space::Shared, 0, offset, WEAK);
        k.store(Space::Generic, BASE, offset, value, WEAK);
        k.load(value, Space::Local, 0, imm(8), WEAK);
        k.store(Space::Generic, BASE + 128, offset, value, WEAK);
        run(&mut gpu, &k.finish(), 1, 32, &[]);
        let expected: Vec<u32> = (0..32).chain(0..32).collect();
        assert_eq!(words(&gpu, BASE, 64), expected);
    }
}

#[test]
fn launches_of_one_queue_follow_each_other_and_queues_overlap() {
    for mode in MODES {
        let mut gpu = gpu(&small(2), mode);
        let mut k = Assembler::new();
        let [value, turns] = k.regs();
        let more = k.pred();
        k.mov(turns, imm(200));
        let again = k.here();
        k.sub(turns, turns, imm(1));
        k.not_equal(more, turns, imm(0));
        k.branch_if(more, true, again);
        k.load(value, Space::Global, BASE, Assembler::argument(0), WEAK);
        k.mul(value, value, imm(3));
        k.add(value, value, Assembler::argument(4));
        k.store(Space::Global, BASE, Assembler::argument(0), value, WEAK);
        let module = k.finish();
        let mut ids = Vec::new();
        for step in 1..=3 {
            for queue in 0..2 {
                let mut one = launch(&module, 1, 32, &[4096 * queue, step]);
                one.queue = queue.into();
                ids.push(gpu.launch(one).unwrap());
            }
        }
        let records: Vec<_> = ids
            .into_iter()
            .map(|id| gpu.run_until_complete(id).unwrap())
            .collect();
        for queue in 0..2 {
            assert_eq!(
                word(&gpu, BASE + 4096 * u64::from(queue as u32)),
                3 * (3 + 2) + 3
            );
            let ends: Vec<_> = records.iter().skip(queue).step_by(2).collect();
            assert!(ends.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
        assert!(
            records[1].start < records[0].end,
            "two queues run side by side"
        );
        assert!(gpu.is_idle());
    }
}
