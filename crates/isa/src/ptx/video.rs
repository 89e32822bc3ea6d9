//! Two halves or four bytes at once, both operands and the result of one sign. PTX ISA, "SIMD
//! Video Instructions".

use super::prelude::*;
use crate::semantics::video::{Each, Finish, apply, set};

entries! {
    "vadd2.u32.u32.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Add, 2, false, Finish::Cut));
    "vadd2.u32.u32.u32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Add, 2, false, Finish::Clamp));
    "vadd2.u32.u32.u32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Add, 2, false, Finish::Sum));
    "vadd2.s32.s32.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Add, 2, true, Finish::Cut));
    "vadd2.s32.s32.s32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Add, 2, true, Finish::Clamp));
    "vadd2.s32.s32.s32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Add, 2, true, Finish::Sum));
    "vadd4.u32.u32.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Add, 4, false, Finish::Cut));
    "vadd4.u32.u32.u32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Add, 4, false, Finish::Clamp));
    "vadd4.u32.u32.u32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Add, 4, false, Finish::Sum));
    "vadd4.s32.s32.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Add, 4, true, Finish::Cut));
    "vadd4.s32.s32.s32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Add, 4, true, Finish::Clamp));
    "vadd4.s32.s32.s32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Add, 4, true, Finish::Sum));
    "vsub2.u32.u32.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Subtract, 2, false, Finish::Cut));
    "vsub2.u32.u32.u32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Subtract, 2, false, Finish::Clamp));
    "vsub2.u32.u32.u32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Subtract, 2, false, Finish::Sum));
    "vsub2.s32.s32.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Subtract, 2, true, Finish::Cut));
    "vsub2.s32.s32.s32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Subtract, 2, true, Finish::Clamp));
    "vsub2.s32.s32.s32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Subtract, 2, true, Finish::Sum));
    "vsub4.u32.u32.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Subtract, 4, false, Finish::Cut));
    "vsub4.u32.u32.u32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Subtract, 4, false, Finish::Clamp));
    "vsub4.u32.u32.u32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Subtract, 4, false, Finish::Sum));
    "vsub4.s32.s32.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Subtract, 4, true, Finish::Cut));
    "vsub4.s32.s32.s32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Subtract, 4, true, Finish::Clamp));
    "vsub4.s32.s32.s32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Subtract, 4, true, Finish::Sum));
    "vavrg2.u32.u32.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Average, 2, false, Finish::Cut));
    "vavrg2.u32.u32.u32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Average, 2, false, Finish::Clamp));
    "vavrg2.u32.u32.u32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Average, 2, false, Finish::Sum));
    "vavrg2.s32.s32.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Average, 2, true, Finish::Cut));
    "vavrg2.s32.s32.s32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Average, 2, true, Finish::Clamp));
    "vavrg2.s32.s32.s32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Average, 2, true, Finish::Sum));
    "vavrg4.u32.u32.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Average, 4, false, Finish::Cut));
    "vavrg4.u32.u32.u32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Average, 4, false, Finish::Clamp));
    "vavrg4.u32.u32.u32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Average, 4, false, Finish::Sum));
    "vavrg4.s32.s32.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Average, 4, true, Finish::Cut));
    "vavrg4.s32.s32.s32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Average, 4, true, Finish::Clamp));
    "vavrg4.s32.s32.s32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Average, 4, true, Finish::Sum));
    "vabsdiff2.u32.u32.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Difference, 2, false, Finish::Cut));
    "vabsdiff2.u32.u32.u32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Difference, 2, false, Finish::Clamp));
    "vabsdiff2.u32.u32.u32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Difference, 2, false, Finish::Sum));
    "vabsdiff2.s32.s32.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Difference, 2, true, Finish::Cut));
    "vabsdiff2.s32.s32.s32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Difference, 2, true, Finish::Clamp));
    "vabsdiff2.s32.s32.s32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Difference, 2, true, Finish::Sum));
    "vabsdiff4.u32.u32.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Difference, 4, false, Finish::Cut));
    "vabsdiff4.u32.u32.u32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Difference, 4, false, Finish::Clamp));
    "vabsdiff4.u32.u32.u32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Difference, 4, false, Finish::Sum));
    "vabsdiff4.s32.s32.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Difference, 4, true, Finish::Cut));
    "vabsdiff4.s32.s32.s32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Difference, 4, true, Finish::Clamp));
    "vabsdiff4.s32.s32.s32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Difference, 4, true, Finish::Sum));
    "vmin2.u32.u32.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Min, 2, false, Finish::Cut));
    "vmin2.u32.u32.u32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Min, 2, false, Finish::Clamp));
    "vmin2.u32.u32.u32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Min, 2, false, Finish::Sum));
    "vmin2.s32.s32.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Min, 2, true, Finish::Cut));
    "vmin2.s32.s32.s32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Min, 2, true, Finish::Clamp));
    "vmin2.s32.s32.s32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Min, 2, true, Finish::Sum));
    "vmin4.u32.u32.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Min, 4, false, Finish::Cut));
    "vmin4.u32.u32.u32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Min, 4, false, Finish::Clamp));
    "vmin4.u32.u32.u32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Min, 4, false, Finish::Sum));
    "vmin4.s32.s32.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Min, 4, true, Finish::Cut));
    "vmin4.s32.s32.s32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Min, 4, true, Finish::Clamp));
    "vmin4.s32.s32.s32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Min, 4, true, Finish::Sum));
    "vmax2.u32.u32.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Max, 2, false, Finish::Cut));
    "vmax2.u32.u32.u32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Max, 2, false, Finish::Clamp));
    "vmax2.u32.u32.u32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Max, 2, false, Finish::Sum));
    "vmax2.s32.s32.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Max, 2, true, Finish::Cut));
    "vmax2.s32.s32.s32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Max, 2, true, Finish::Clamp));
    "vmax2.s32.s32.s32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Max, 2, true, Finish::Sum));
    "vmax4.u32.u32.u32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Max, 4, false, Finish::Cut));
    "vmax4.u32.u32.u32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Max, 4, false, Finish::Clamp));
    "vmax4.u32.u32.u32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Max, 4, false, Finish::Sum));
    "vmax4.s32.s32.s32" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Max, 4, true, Finish::Cut));
    "vmax4.s32.s32.s32.sat" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Max, 4, true, Finish::Clamp));
    "vmax4.s32.s32.s32.add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(video; (Each::Max, 4, true, Finish::Sum));
    "vset2.u32.u32(.eq.ne.lt.le.gt.ge)" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(compare; (2, false, Finish::Cut));
    "vset2.u32.u32(.eq.ne.lt.le.gt.ge).add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(compare; (2, false, Finish::Sum));
    "vset2.s32.s32(.eq.ne.lt.le.gt.ge)" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(compare; (2, true, Finish::Cut));
    "vset2.s32.s32(.eq.ne.lt.le.gt.ge).add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(compare; (2, true, Finish::Sum));
    "vset4.u32.u32(.eq.ne.lt.le.gt.ge)" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(compare; (4, false, Finish::Cut));
    "vset4.u32.u32(.eq.ne.lt.le.gt.ge).add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(compare; (4, false, Finish::Sum));
    "vset4.s32.s32(.eq.ne.lt.le.gt.ge)" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(compare; (4, true, Finish::Cut));
    "vset4.s32.s32(.eq.ne.lt.le.gt.ge).add" INTEGER [Write(B32), Read(B32), Read(B32), Read(B32)]
        semantics!(compare; (4, true, Finish::Sum));
}

#[inline(always)]
fn video(
    l: &mut Lanes<'_>,
    i: &Instruction,
    (each, elements, signed, finish): (Each, u32, bool, Finish),
) {
    ternary(l, i, |a, b, c| {
        apply(each, elements, signed, finish, a, b, c)
    });
}

#[inline(always)]
fn compare(l: &mut Lanes<'_>, i: &Instruction, (elements, signed, finish): (u32, bool, Finish)) {
    let comparison = Modifiers(i.modifiers).comparison();
    ternary(l, i, |a, b, c| {
        set(comparison, elements, signed, finish, [a, b, c])
    });
}
