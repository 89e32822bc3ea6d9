// Machine operations that C++ has no words for, as functions around inline PTX.
//
// The host has its own of the same names. Where an architecture lacks an instruction, what stands in for it
// gives the same value.
#pragma once

// -- integers ---------------------------------------------------------------------------------------------------

// Any function of three bits, by its table of truth.
template <int TABLE> INLINE u32 op_lop3(u32 a, u32 b, u32 c)
{
    u32 r;
    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(c), "n"(TABLE));
    return r;
}

#define OP1(NAME, TEXT, R, RC, A, AC) \
    INLINE R NAME(A a)                \
    {                                 \
        R r;                          \
        asm(TEXT : "=" RC(r) : AC(a)); \
        return r;                     \
    }
#define OP2(NAME, TEXT, R, RC, A, AC, B, BC)    \
    INLINE R NAME(A a, B b)                     \
    {                                           \
        R r;                                    \
        asm(TEXT : "=" RC(r) : AC(a), BC(b));   \
        return r;                               \
    }
#define OP3(NAME, TEXT, R, RC, A, AC, B, BC, C, CC)      \
    INLINE R NAME(A a, B b, C c)                         \
    {                                                    \
        R r;                                             \
        asm(TEXT : "=" RC(r) : AC(a), BC(b), CC(c));     \
        return r;                                        \
    }
#define OP4(NAME, TEXT, R, RC, A, AC, B, BC, C, CC, D, DC)        \
    INLINE R NAME(A a, B b, C c, D d)                             \
    {                                                             \
        R r;                                                      \
        asm(TEXT : "=" RC(r) : AC(a), BC(b), CC(c), DC(d));       \
        return r;                                                 \
    }

// Bytes of two words: by the four nibbles of `c`, and the six other modes, by its lowest two bits.
#define PRMT(MODE) OP3(op_prmt_##MODE, "prmt.b32." #MODE " %0, %1, %2, %3;", u32, "r", u32, "r", u32, "r", u32, "r")
OP3(op_prmt, "prmt.b32 %0, %1, %2, %3;", u32, "r", u32, "r", u32, "r", u32, "r")
PRMT(f4e)
PRMT(b4e)
PRMT(rc8)
PRMT(ecl)
PRMT(ecr)
PRMT(rc16)

// Fields of bits: position and length are bytes, of any value.
OP3(op_bfe_u32, "bfe.u32 %0, %1, %2, %3;", u32, "r", u32, "r", u32, "r", u32, "r")
OP3(op_bfe_s32, "bfe.s32 %0, %1, %2, %3;", i32, "r", i32, "r", u32, "r", u32, "r")
OP3(op_bfe_u64, "bfe.u64 %0, %1, %2, %3;", u64, "l", u64, "l", u32, "r", u32, "r")
OP3(op_bfe_s64, "bfe.s64 %0, %1, %2, %3;", i64, "l", i64, "l", u32, "r", u32, "r")
OP4(op_bfi_b32, "bfi.b32 %0, %1, %2, %3, %4;", u32, "r", u32, "r", u32, "r", u32, "r", u32, "r")
OP4(op_bfi_b64, "bfi.b64 %0, %1, %2, %3, %4;", u64, "l", u64, "l", u64, "l", u32, "r", u32, "r")
OP1(op_bfind_u32, "bfind.u32 %0, %1;", u32, "r", u32, "r")
OP1(op_bfind_s32, "bfind.s32 %0, %1;", u32, "r", i32, "r")
OP1(op_bfind_u64, "bfind.u64 %0, %1;", u32, "r", u64, "l")
OP1(op_bfind_s64, "bfind.s64 %0, %1;", u32, "r", i64, "l")
OP1(op_bfind_shiftamt_u32, "bfind.shiftamt.u32 %0, %1;", u32, "r", u32, "r")
OP1(op_bfind_shiftamt_s32, "bfind.shiftamt.s32 %0, %1;", u32, "r", i32, "r")
OP1(op_bfind_shiftamt_u64, "bfind.shiftamt.u64 %0, %1;", u32, "r", u64, "l")
OP1(op_bfind_shiftamt_s64, "bfind.shiftamt.s64 %0, %1;", u32, "r", i64, "l")
// Sign extension of the lowest bits. Before sm_90 ptxas reads a width in constant memory from a wrong bank.
#if __CUDA_ARCH__ < 900
#define SZEXT_WIDTH(WIDTH) unknown(WIDTH)
#else
#define SZEXT_WIDTH(WIDTH) (WIDTH)
#endif
#define SZEXT(NAME, TEXT, T)                                                        \
    INLINE T NAME(T a, u32 width)                                                   \
    {                                                                               \
        T r;                                                                        \
        asm(TEXT " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(SZEXT_WIDTH(width)));       \
        return r;                                                                   \
    }
SZEXT(op_szext_clamp_s32, "szext.clamp.s32", i32)
SZEXT(op_szext_wrap_s32, "szext.wrap.s32", i32)
SZEXT(op_szext_clamp_u32, "szext.clamp.u32", u32)
SZEXT(op_szext_wrap_u32, "szext.wrap.u32", u32)
OP2(op_bmsk_clamp, "bmsk.clamp.b32 %0, %1, %2;", u32, "r", u32, "r", u32, "r")
OP2(op_bmsk_wrap, "bmsk.wrap.b32 %0, %1, %2;", u32, "r", u32, "r", u32, "r")

// Shifts by any count: 32 and more give zeros or signs.
OP2(op_shl_b32, "shl.b32 %0, %1, %2;", u32, "r", u32, "r", u32, "r")
OP2(op_shr_u32, "shr.u32 %0, %1, %2;", u32, "r", u32, "r", u32, "r")
OP2(op_shr_s32, "shr.s32 %0, %1, %2;", i32, "r", i32, "r", u32, "r")
OP2(op_shl_b64, "shl.b64 %0, %1, %2;", u64, "l", u64, "l", u32, "r")
OP2(op_shr_u64, "shr.u64 %0, %1, %2;", u64, "l", u64, "l", u32, "r")
OP2(op_shr_s64, "shr.s64 %0, %1, %2;", i64, "l", i64, "l", u32, "r")
OP2(op_shl_b16, "shl.b16 %0, %1, %2;", u16, "h", u16, "h", u32, "r")
OP2(op_shr_u16, "shr.u16 %0, %1, %2;", u16, "h", u16, "h", u32, "r")
OP2(op_shr_s16, "shr.s16 %0, %1, %2;", i16, "h", i16, "h", u32, "r")

OP2(op_add_sat_s32, "add.sat.s32 %0, %1, %2;", i32, "r", i32, "r", i32, "r")
OP2(op_sub_sat_s32, "sub.sat.s32 %0, %1, %2;", i32, "r", i32, "r", i32, "r")
OP3(op_mad_hi_sat_s32, "mad.hi.sat.s32 %0, %1, %2, %3;", i32, "r", i32, "r", i32, "r", i32, "r")
OP3(op_mad_hi_s32, "mad.hi.s32 %0, %1, %2, %3;", i32, "r", i32, "r", i32, "r", i32, "r")
OP3(op_mad_hi_u32, "mad.hi.u32 %0, %1, %2, %3;", u32, "r", u32, "r", u32, "r", u32, "r")
OP3(op_mad_wide_u32, "mad.wide.u32 %0, %1, %2, %3;", u64, "l", u32, "r", u32, "r", u64, "l")
OP3(op_mad_wide_s32, "mad.wide.s32 %0, %1, %2, %3;", i64, "l", i32, "r", i32, "r", i64, "l")
OP3(op_mad_wide_u16, "mad.wide.u16 %0, %1, %2, %3;", u32, "r", u16, "h", u16, "h", u32, "r")
OP3(op_mad_wide_s16, "mad.wide.s16 %0, %1, %2, %3;", i32, "r", i16, "h", i16, "h", i32, "r")
OP3(op_mad_lo_u16, "mad.lo.u16 %0, %1, %2, %3;", u16, "h", u16, "h", u16, "h", u16, "h")
OP3(op_mad_lo_s64, "mad.lo.s64 %0, %1, %2, %3;", i64, "l", i64, "l", i64, "l", i64, "l")
OP3(op_mad_hi_u64, "mad.hi.u64 %0, %1, %2, %3;", u64, "l", u64, "l", u64, "l", u64, "l")
OP2(op_mul_hi_u16, "mul.hi.u16 %0, %1, %2;", u16, "h", u16, "h", u16, "h")
OP2(op_mul_hi_s16, "mul.hi.s16 %0, %1, %2;", i16, "h", i16, "h", i16, "h")
OP2(op_mul24_hi_u32, "mul24.hi.u32 %0, %1, %2;", u32, "r", u32, "r", u32, "r")
OP2(op_mul24_hi_s32, "mul24.hi.s32 %0, %1, %2;", i32, "r", i32, "r", i32, "r")
OP3(op_mad24_lo_u32, "mad24.lo.u32 %0, %1, %2, %3;", u32, "r", u32, "r", u32, "r", u32, "r")
OP3(op_mad24_lo_s32, "mad24.lo.s32 %0, %1, %2, %3;", i32, "r", i32, "r", i32, "r", i32, "r")
OP3(op_mad24_hi_u32, "mad24.hi.u32 %0, %1, %2, %3;", u32, "r", u32, "r", u32, "r", u32, "r")
OP3(op_mad24_hi_s32, "mad24.hi.s32 %0, %1, %2, %3;", i32, "r", i32, "r", i32, "r", i32, "r")
OP3(op_mad24_hi_sat_s32, "mad24.hi.sat.s32 %0, %1, %2, %3;", i32, "r", i32, "r", i32, "r", i32, "r")
OP3(op_sad_u16, "sad.u16 %0, %1, %2, %3;", u16, "h", u16, "h", u16, "h", u16, "h")
OP3(op_sad_u64, "sad.u64 %0, %1, %2, %3;", u64, "l", u64, "l", u64, "l", u64, "l")

// Sums of four or two products of bytes (and of halves): signs of the factors by name.
OP3(op_dp4a_ss, "dp4a.s32.s32 %0, %1, %2, %3;", i32, "r", u32, "r", u32, "r", i32, "r")
OP3(op_dp4a_su, "dp4a.s32.u32 %0, %1, %2, %3;", i32, "r", u32, "r", u32, "r", i32, "r")
OP3(op_dp4a_us, "dp4a.u32.s32 %0, %1, %2, %3;", i32, "r", u32, "r", u32, "r", i32, "r")
OP3(op_dp4a_uu, "dp4a.u32.u32 %0, %1, %2, %3;", u32, "r", u32, "r", u32, "r", u32, "r")
OP3(op_dp2a_lo_ss, "dp2a.lo.s32.s32 %0, %1, %2, %3;", i32, "r", u32, "r", u32, "r", i32, "r")
OP3(op_dp2a_lo_su, "dp2a.lo.s32.u32 %0, %1, %2, %3;", i32, "r", u32, "r", u32, "r", i32, "r")
OP3(op_dp2a_lo_us, "dp2a.lo.u32.s32 %0, %1, %2, %3;", i32, "r", u32, "r", u32, "r", i32, "r")
OP3(op_dp2a_lo_uu, "dp2a.lo.u32.u32 %0, %1, %2, %3;", u32, "r", u32, "r", u32, "r", u32, "r")
OP3(op_dp2a_hi_ss, "dp2a.hi.s32.s32 %0, %1, %2, %3;", i32, "r", u32, "r", u32, "r", i32, "r")
OP3(op_dp2a_hi_us, "dp2a.hi.u32.s32 %0, %1, %2, %3;", i32, "r", u32, "r", u32, "r", i32, "r")
OP3(op_dp2a_hi_uu, "dp2a.hi.u32.u32 %0, %1, %2, %3;", u32, "r", u32, "r", u32, "r", u32, "r")

// Sums of many words by carries. The value is the exclusive or of the words of the result.
INLINE u32 op_add_carry(u32 a0, u32 a1, u32 a2, u32 b0, u32 b1, u32 b2)
{
    u32 r0, r1, r2, r3;
    asm("add.cc.u32 %0, %4, %7;\n\taddc.cc.u32 %1, %5, %8;\n\taddc.cc.u32 %2, %6, %9;\n\taddc.u32 %3, 0, 0;"
        : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
        : "r"(a0), "r"(a1), "r"(a2), "r"(b0), "r"(b1), "r"(b2));
    return r0 ^ (r1 * 3u) ^ (r2 * 5u) ^ (r3 * 7u);
}
INLINE u32 op_sub_borrow(u32 a0, u32 a1, u32 a2, u32 b0, u32 b1, u32 b2)
{
    u32 r0, r1, r2, r3;
    asm("sub.cc.u32 %0, %4, %7;\n\tsubc.cc.u32 %1, %5, %8;\n\tsubc.cc.u32 %2, %6, %9;\n\tsubc.u32 %3, 0, 0;"
        : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
        : "r"(a0), "r"(a1), "r"(a2), "r"(b0), "r"(b1), "r"(b2));
    return r0 ^ (r1 * 3u) ^ (r2 * 5u) ^ (r3 * 7u);
}
// a * b + c of 64 bits, as 128 bits.
INLINE u32 op_mad_carry(u32 a0, u32 a1, u32 b0, u32 b1, u32 c0, u32 c1)
{
    u32 r0, r1, r2, r3;
    asm("{\n\t"
        "mad.lo.cc.u32 %0, %4, %6, %8;\n\t"
        "madc.hi.cc.u32 %1, %4, %6, %9;\n\t"
        "madc.hi.u32 %2, %5, %6, 0;\n\t"
        "mad.lo.cc.u32 %1, %5, %6, %1;\n\t"
        "addc.u32 %2, %2, 0;\n\t"
        "mad.lo.cc.u32 %1, %4, %7, %1;\n\t"
        "madc.hi.cc.u32 %2, %4, %7, %2;\n\t"
        "madc.hi.u32 %3, %5, %7, 0;\n\t"
        "mad.lo.cc.u32 %2, %5, %7, %2;\n\t"
        "addc.u32 %3, %3, 0;\n\t}"
        : "=&r"(r0), "=&r"(r1), "=&r"(r2), "=&r"(r3)
        : "r"(a0), "r"(a1), "r"(b0), "r"(b1), "r"(c0), "r"(c1));
    return r0 ^ (r1 * 3u) ^ (r2 * 5u) ^ (r3 * 7u);
}
INLINE u64 op_add_carry64(u64 a0, u64 a1, u64 b0, u64 b1)
{
    u64 r0, r1;
    asm("add.cc.u64 %0, %2, %4;\n\taddc.u64 %1, %3, %5;" : "=l"(r0), "=l"(r1) : "l"(a0), "l"(a1), "l"(b0), "l"(b1));
    return r0 ^ (r1 * 3u);
}

// Scalar video instructions: parts of words, saturation, and a second operation.
#define VIDEO2(NAME, TEXT) OP2(NAME, TEXT " %0, %1, %2;", u32, "r", u32, "r", u32, "r")
#define VIDEO3(NAME, TEXT, PARTS) OP3(NAME, TEXT " %0, " PARTS ";", u32, "r", u32, "r", u32, "r", u32, "r")
VIDEO3(op_vadd_b1_h1, "vadd.s32.u32.s32.add", "%1.b1, %2.h1, %3")
VIDEO3(op_vsub_sat_min, "vsub.s32.s32.s32.sat.min", "%1.h0, %2.b3, %3")
VIDEO3(op_vabsdiff_max, "vabsdiff.u32.s32.s32.max", "%1.b2, %2.b0, %3")
VIDEO3(op_vmin_add, "vmin.s32.s32.s32.add", "%1.h1, %2.h0, %3")
VIDEO3(op_vmax_min, "vmax.u32.u32.u32.min", "%1.b3, %2.b1, %3")
VIDEO3(op_vshl_clamp, "vshl.u32.u32.u32.clamp.add", "%1.h0, %2.b0, %3")
VIDEO3(op_vshr_wrap, "vshr.s32.s32.u32.wrap.add", "%1.h1, %2.b2, %3")
VIDEO3(op_vmad_po, "vmad.u32.u32.u32.po", "%1.b0, %2.h1, %3")
VIDEO3(op_vset_lt_add, "vset.s32.u32.lt.add", "%1.b1, %2.b2, %3")
VIDEO3(op_vset_ge_max, "vset.u32.u32.ge.max", "%1, %2.h0, %3")

// -- 32-bit and 64-bit floats -----------------------------------------------------------------------------------

#define FLOAT1(NAME, TEXT) OP1(NAME, TEXT " %0, %1;", f32, "f", f32, "f")
#define FLOAT2(NAME, TEXT) OP2(NAME, TEXT " %0, %1, %2;", f32, "f", f32, "f", f32, "f")
#define FLOAT3(NAME, TEXT) OP3(NAME, TEXT " %0, %1, %2, %3;", f32, "f", f32, "f", f32, "f", f32, "f")
#define DOUBLE1(NAME, TEXT) OP1(NAME, TEXT " %0, %1;", f64, "d", f64, "d")
// Those whose name has ftz take denormals as zeros and give zeros for them; those with sat clamp to 0..1.
FLOAT2(op_add_ftz, "add.rn.ftz.f32")
FLOAT2(op_add_rz_ftz, "add.rz.ftz.f32")
FLOAT2(op_add_rp_ftz, "add.rp.ftz.f32")
FLOAT2(op_add_sat, "add.rn.sat.f32")
FLOAT2(op_add_ftz_sat, "add.rn.ftz.sat.f32")
FLOAT2(op_sub_ftz, "sub.rn.ftz.f32")
FLOAT2(op_sub_sat, "sub.rn.sat.f32")
FLOAT2(op_sub_rm_ftz, "sub.rm.ftz.f32")
FLOAT2(op_mul_ftz, "mul.rn.ftz.f32")
FLOAT2(op_mul_rz_ftz, "mul.rz.ftz.f32")
FLOAT2(op_mul_sat, "mul.rn.sat.f32")
FLOAT2(op_mul_ftz_sat, "mul.rn.ftz.sat.f32")
FLOAT3(op_fma_ftz, "fma.rn.ftz.f32")
FLOAT3(op_fma_rm_ftz, "fma.rm.ftz.f32")
FLOAT3(op_fma_sat, "fma.rn.sat.f32")
FLOAT3(op_fma_rp_ftz_sat, "fma.rp.ftz.sat.f32")
FLOAT2(op_min, "min.f32")
FLOAT2(op_max, "max.f32")
FLOAT2(op_min_ftz, "min.ftz.f32")
FLOAT2(op_max_ftz, "max.ftz.f32")
FLOAT1(op_abs_ftz, "abs.ftz.f32")
FLOAT1(op_neg_ftz, "neg.ftz.f32")
FLOAT2(op_div_rn_ftz, "div.rn.ftz.f32")
FLOAT1(op_rcp_rn_ftz, "rcp.rn.ftz.f32")
FLOAT1(op_sqrt_rn_ftz, "sqrt.rn.ftz.f32")
FLOAT1(op_sqrt_rz_ftz, "sqrt.rz.ftz.f32")
FLOAT1(op_cvt_rni, "cvt.rni.f32.f32")
FLOAT1(op_cvt_rzi_ftz, "cvt.rzi.ftz.f32.f32")
FLOAT1(op_cvt_rmi_ftz, "cvt.rmi.ftz.f32.f32")
FLOAT1(op_cvt_rpi_sat, "cvt.rpi.sat.f32.f32")
FLOAT1(op_cvt_sat, "cvt.sat.f32.f32")
FLOAT1(op_cvt_ftz_sat, "cvt.ftz.sat.f32.f32")
FLOAT1(op_rcp_approx, "rcp.approx.f32")
FLOAT1(op_rcp_approx_ftz, "rcp.approx.ftz.f32")
FLOAT1(op_sqrt_approx, "sqrt.approx.f32")
FLOAT1(op_sqrt_approx_ftz, "sqrt.approx.ftz.f32")
FLOAT1(op_rsqrt_approx, "rsqrt.approx.f32")
FLOAT1(op_rsqrt_approx_ftz, "rsqrt.approx.ftz.f32")
FLOAT1(op_ex2_approx, "ex2.approx.f32")
FLOAT1(op_ex2_approx_ftz, "ex2.approx.ftz.f32")
FLOAT1(op_lg2_approx, "lg2.approx.f32")
FLOAT1(op_lg2_approx_ftz, "lg2.approx.ftz.f32")
FLOAT1(op_sin_approx, "sin.approx.f32")
FLOAT1(op_sin_approx_ftz, "sin.approx.ftz.f32")
FLOAT1(op_cos_approx, "cos.approx.f32")
FLOAT1(op_cos_approx_ftz, "cos.approx.ftz.f32")
FLOAT2(op_div_full, "div.full.f32")
FLOAT2(op_div_full_ftz, "div.full.ftz.f32")
FLOAT2(op_div_approx, "div.approx.f32")
DOUBLE1(op_rcp_approx_ftz_f64, "rcp.approx.ftz.f64")
DOUBLE1(op_rsqrt_approx_f64, "rsqrt.approx.f64")
DOUBLE1(op_rsqrt_approx_ftz_f64, "rsqrt.approx.ftz.f64")
OP2(op_min_f64, "min.f64 %0, %1, %2;", f64, "d", f64, "d", f64, "d")
OP2(op_max_f64, "max.f64 %0, %1, %2;", f64, "d", f64, "d", f64, "d")

#if __CUDA_ARCH__ >= 800
FLOAT2(op_min_nan, "min.NaN.f32")
FLOAT2(op_max_nan, "max.NaN.f32")
FLOAT2(op_max_ftz_nan, "max.ftz.NaN.f32")
#else
INLINE f32 op_min_nan(f32 a, f32 b) { return a != a || b != b ? as_f32(0x7fffffffu) : op_min(a, b); }
INLINE f32 op_max_nan(f32 a, f32 b) { return a != a || b != b ? as_f32(0x7fffffffu) : op_max(a, b); }
INLINE f32 op_max_ftz_nan(f32 a, f32 b) { return a != a || b != b ? as_f32(0x7fffffffu) : op_max_ftz(a, b); }
#endif

// Comparisons that give a word, a float, or take part in a logic operation.
#define SET_U32(COMPARE) OP2(op_set_##COMPARE##_u32, "set." #COMPARE ".u32.f32 %0, %1, %2;", u32, "r", f32, "f", f32, "f")
#define SET_F32(COMPARE) OP2(op_set_##COMPARE##_f32, "set." #COMPARE ".f32.f32 %0, %1, %2;", f32, "f", f32, "f", f32, "f")
SET_U32(eq)
SET_U32(ne)
SET_U32(lt)
SET_U32(le)
SET_U32(gt)
SET_U32(ge)
SET_U32(equ)
SET_U32(neu)
SET_U32(ltu)
SET_U32(leu)
SET_U32(gtu)
SET_U32(geu)
SET_U32(num)
SET_U32(nan)
SET_F32(lt)
SET_F32(geu)
SET_F32(num)
OP2(op_set_lt_ftz_u32, "set.lt.ftz.u32.f32 %0, %1, %2;", u32, "r", f32, "f", f32, "f")
OP2(op_set_eq_ftz_u32, "set.eq.ftz.u32.f32 %0, %1, %2;", u32, "r", f32, "f", f32, "f")
OP2(op_set_ltu_f64, "set.ltu.u32.f64 %0, %1, %2;", u32, "r", f64, "d", f64, "d")
OP2(op_set_neu_f64, "set.neu.u32.f64 %0, %1, %2;", u32, "r", f64, "d", f64, "d")
OP2(op_set_nan_f64, "set.nan.u32.f64 %0, %1, %2;", u32, "r", f64, "d", f64, "d")
OP2(op_set_lt_s32_f32, "set.lt.f32.s32 %0, %1, %2;", f32, "f", i32, "r", i32, "r")
OP3(op_slct_f32, "slct.f32.s32 %0, %1, %2, %3;", f32, "f", f32, "f", f32, "f", i32, "r")
OP3(op_slct_u64, "slct.u64.s32 %0, %1, %2, %3;", u64, "l", u64, "l", u64, "l", i32, "r")
OP3(op_slct_by_f32, "slct.s32.f32 %0, %1, %2, %3;", i32, "r", i32, "r", i32, "r", f32, "f")
#define TESTP(WHAT)                                                                             \
    OP1(op_testp_##WHAT, "{.reg .pred p; testp." #WHAT ".f32 p, %1; selp.u32 %0, 1, 0, p;}", u32, "r", f32, "f") \
    OP1(op_testp_##WHAT##_f64, "{.reg .pred p; testp." #WHAT ".f64 p, %1; selp.u32 %0, 1, 0, p;}", u32, "r", f64, "d")
TESTP(finite)
TESTP(infinite)
TESTP(number)
TESTP(notanumber)
TESTP(normal)
TESTP(subnormal)
// Two predicates of one comparison, with a third taking part.
#define SETP(NAME, TEXT, A, AC)                                                                                  \
    OP3(NAME, "{.reg .pred p, q, c; setp.ne.u32 c, %3, 0; " TEXT " p|q, %1, %2, c; selp.u32 %0, 1, 2, p; @q add.u32 %0, %0, 4;}", \
        u32, "r", A, AC, A, AC, u32, "r")
SETP(op_setp_lt_and_u32, "setp.lt.and.u32", u32, "r")
SETP(op_setp_ge_xor_s32, "setp.ge.xor.s32", i32, "r")
SETP(op_setp_ne_or_u64, "setp.ne.or.u64", u64, "l")
SETP(op_setp_gt_xor_s64, "setp.gt.xor.s64", i64, "l")
SETP(op_setp_hs_and_u16, "setp.hs.and.u16", u16, "h")
SETP(op_setp_ltu_and_f32, "setp.ltu.and.f32", f32, "f")
SETP(op_setp_ge_or_f32, "setp.ge.or.f32", f32, "f")
SETP(op_setp_nan_xor_f64, "setp.nan.xor.f64", f64, "d")

// Conversions: the rows are in `conversions.inc`.
#define REGISTER(TYPE) REGISTER_##TYPE
#define REGISTER_u8 "h"
#define REGISTER_s8 "h"
#define REGISTER_u16 "h"
#define REGISTER_s16 "h"
#define REGISTER_u32 "r"
#define REGISTER_s32 "r"
#define REGISTER_u64 "l"
#define REGISTER_s64 "l"
#define REGISTER_f32 "f"
#define REGISTER_f64 "d"
#define CONVERT(TO, FROM, ROUND) \
    OP1(op_cvt_##ROUND##_##TO##_##FROM, "cvt." #ROUND "." #TO "." #FROM " %0, %1;", HELD_##TO, REGISTER(TO), HELD_##FROM, REGISTER(FROM))
#define CONVERT_WITH(TO, FROM, ROUND, MODIFIER) \
    OP1(op_cvt_##ROUND##_##MODIFIER##_##TO##_##FROM, "cvt." #ROUND "." #MODIFIER "." #TO "." #FROM " %0, %1;", HELD_##TO, REGISTER(TO), HELD_##FROM, REGISTER(FROM))
#include "conversions.inc"
#undef CONVERT
#undef CONVERT_WITH

// -- memory -----------------------------------------------------------------------------------------------------

// Loads and stores of memory by the caches they ask for. `T` is u32, u64 or u16.
#define LOAD(NAME, TEXT, T, C)                                                   \
    INLINE T op_ld_##NAME(const T *p)                                            \
    {                                                                            \
        T r;                                                                     \
        asm volatile(TEXT " %0, [%1];" : "=" C(r) : "l"(p) : "memory");          \
        return r;                                                                \
    }
#define STORE(NAME, TEXT, T, C)                                                  \
    INLINE void op_st_##NAME(T *p, T value)                                      \
    {                                                                            \
        asm volatile(TEXT " [%0], %1;" : : "l"(p), C(value) : "memory");         \
    }
#define CACHED(T, C, BITS)                               \
    LOAD(ca_##T, "ld.global.ca." BITS, T, C)             \
    LOAD(cg_##T, "ld.global.cg." BITS, T, C)             \
    LOAD(cs_##T, "ld.global.cs." BITS, T, C)             \
    LOAD(lu_##T, "ld.global.lu." BITS, T, C)             \
    LOAD(cv_##T, "ld.global.cv." BITS, T, C)             \
    LOAD(volatile_##T, "ld.volatile.global." BITS, T, C) \
    LOAD(relaxed_##T, "ld.relaxed.gpu.global." BITS, T, C) \
    LOAD(acquire_##T, "ld.acquire.sys.global." BITS, T, C) \
    STORE(wb_##T, "st.global.wb." BITS, T, C)            \
    STORE(cg_##T, "st.global.cg." BITS, T, C)            \
    STORE(cs_##T, "st.global.cs." BITS, T, C)            \
    STORE(wt_##T, "st.global.wt." BITS, T, C)            \
    STORE(volatile_##T, "st.volatile.global." BITS, T, C) \
    STORE(relaxed_##T, "st.relaxed.gpu.global." BITS, T, C) \
    STORE(release_##T, "st.release.gpu.global." BITS, T, C)
CACHED(u16, "h", "u16")
CACHED(u32, "r", "u32")
CACHED(u64, "l", "u64")
