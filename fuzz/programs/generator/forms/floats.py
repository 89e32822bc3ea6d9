"""Operations on 32-bit and 64-bit floats."""

from ..kernel import operations

operations("""
f32 | ({f32} + {f32}) | 6
f32 | ({f32} - {f32}) | 5
f32 | ({f32} * {f32}) | 6
f32 | ({f32} / {f32}) | 1
f32 | ({f32} + {=f32}) | 2
f32 | ({f32} * {=f32}) | 2
f32 | __fmaf_rn({f32}, {f32}, {f32}) | 5
f32 | __fmaf_rn({f32}, {=f32}, {f32}) | 2
f32 | __fmaf_rn({f32}, {f32}, {=f32}) | 2
f32 | __fmaf_rn(-{f32}, {f32}, -{f32}) | 2
f32 | __fmaf_rn(fabsf({f32}), {f32}, {f32})
f32 | (-{f32}) | 3
f32 | fabsf({f32}) | 3
f32 | (-fabsf({f32})) | 2
f32 | (fabsf({f32}) + fabsf({f32}))
f32 | (fabsf({f32}) - {f32})
f32 | (fabsf({f32}) * -{f32})
f32 | fminf({f32}, {f32}) | 2
f32 | fmaxf({f32}, {f32}) | 2
f32 | fminf(fabsf({f32}), -{f32})
f32 | fmaxf(fminf({f32}, {=f32}), {=f32})
f32 | ({bool} ? {f32} : {f32}) | 3
f32 | ({f32} < {f32} ? {f32} : {f32}) | 2
f32 | __saturatef({f32}) | 2
f32 | __saturatef({f32} + {f32})
f32 | __saturatef(__fmaf_rn({f32}, {f32}, {f32}))
f32 | copysignf({f32}, canonical({f32}))
f32 | rintf({f32})
f32 | floorf({f32})
f32 | ceilf({f32})
f32 | truncf({f32})
f32 | roundf({f32})
f32 | nearbyintf({f32})
f32 | fdimf({f32}, {f32}) | 0.5
f32 | fmodf({f32}, {f32}) | 0.15
f32 | remainderf({f32}, {f32}) | 0.1
f32 | ldexpf({f32}, ({i32}) >> 24) | 0.3
f32 | nextafterf({f32}, {f32}) | 0.3
f32 | logbf({f32}) | 0.3
i32 | ilogbf({f32}) | 0.2
f32 | sqrtf({f32})
f32 | as_f32({u32})
f32 | as_f32(({u32} & 0x807fffffu) | 0x3f800000u)
f32 | as_f32({u32} & 0x807fffffu)
u32 | ((u32)bits({f32}) & 0x7f800000u) >> 23
u32 | ((u32)bits({f32}) & 0x7fffffu)
f32 | __fadd_rz({f32}, {f32})
f32 | __fadd_ru({f32}, {f32})
f32 | __fadd_rd({f32}, {f32})
f32 | __fsub_rz({f32}, {f32}) | 0.5
f32 | __fsub_ru({f32}, {f32}) | 0.5
f32 | __fsub_rd({f32}, {f32}) | 0.5
f32 | __fmul_rz({f32}, {f32})
f32 | __fmul_ru({f32}, {f32})
f32 | __fmul_rd({f32}, {f32})
f32 | __fmaf_rz({f32}, {f32}, {f32})
f32 | __fmaf_ru({f32}, {f32}, {f32})
f32 | __fmaf_rd({f32}, {f32}, {f32})
f32 | __fdiv_rn({f32}, {f32}) | 0.4
f32 | __fdiv_rz({f32}, {f32}) | 0.3
f32 | __fdiv_ru({f32}, {f32}) | 0.3
f32 | __fdiv_rd({f32}, {f32}) | 0.3
f32 | __frcp_rn({f32}) | 0.4
f32 | __frcp_rz({f32}) | 0.3
f32 | __frcp_ru({f32}) | 0.3
f32 | __frcp_rd({f32}) | 0.3
f32 | __fsqrt_rn({f32}) | 0.4
f32 | __fsqrt_rz({f32}) | 0.3
f32 | __fsqrt_ru({f32}) | 0.3
f32 | __fsqrt_rd({f32}) | 0.3
f32 | op_add_ftz({f32}, {f32})
f32 | op_add_rz_ftz({f32}, {f32}) | 0.5
f32 | op_add_rp_ftz({f32}, {f32}) | 0.5
f32 | op_add_sat({f32}, {f32})
f32 | op_add_ftz_sat({f32}, {f32}) | 0.5
f32 | op_sub_ftz({f32}, {f32})
f32 | op_sub_sat({f32}, {f32}) | 0.5
f32 | op_sub_rm_ftz({f32}, {f32}) | 0.5
f32 | op_mul_ftz({f32}, {f32})
f32 | op_mul_rz_ftz({f32}, {f32}) | 0.5
f32 | op_mul_sat({f32}, {f32})
f32 | op_mul_ftz_sat({f32}, {f32}) | 0.5
f32 | op_fma_ftz({f32}, {f32}, {f32})
f32 | op_fma_rm_ftz({f32}, {f32}, {f32}) | 0.5
f32 | op_fma_sat({f32}, {f32}, {f32})
f32 | op_fma_rp_ftz_sat({f32}, {f32}, {f32}) | 0.5
f32 | op_min({f32}, {f32})
f32 | op_max({f32}, {f32})
f32 | op_min_ftz({f32}, {f32})
f32 | op_max_ftz({f32}, {f32})
f32 | op_min_nan({f32}, {f32})
f32 | op_max_nan({f32}, {f32})
f32 | op_max_ftz_nan({f32}, {f32})
f32 | op_abs_ftz({f32}) | 0.5
f32 | op_neg_ftz({f32}) | 0.5
f32 | op_div_rn_ftz({f32}, {f32}) | 0.3
f32 | op_rcp_rn_ftz({f32}) | 0.3
f32 | op_sqrt_rn_ftz({f32}) | 0.3
f32 | op_sqrt_rz_ftz({f32}) | 0.3
f32 | op_cvt_rni({f32})
f32 | op_cvt_rzi_ftz({f32}) | 0.5
f32 | op_cvt_rmi_ftz({f32}) | 0.5
f32 | op_cvt_rpi_sat({f32}) | 0.5
f32 | op_cvt_sat({f32}) | 0.5
f32 | op_cvt_ftz_sat({f32}) | 0.5
f32 | op_set_lt_f32({f32}, {f32}) | 0.5
f32 | op_set_geu_f32({f32}, {f32}) | 0.5
f32 | op_set_num_f32({f32}, {f32}) | 0.5
f32 | op_set_lt_s32_f32({i32}, {i32}) | 0.5
f32 | op_slct_f32({f32}, {f32}, {i32}) | 0.5
u32 | op_set_eq_u32({f32}, {f32}) | 0.3
u32 | op_set_ne_u32({f32}, {f32}) | 0.3
u32 | op_set_lt_u32({f32}, {f32}) | 0.3
u32 | op_set_le_u32({f32}, {f32}) | 0.3
u32 | op_set_gt_u32({f32}, {f32}) | 0.3
u32 | op_set_ge_u32({f32}, {=f32}) | 0.3
u32 | op_set_equ_u32({f32}, {f32}) | 0.3
u32 | op_set_neu_u32({f32}, {f32}) | 0.3
u32 | op_set_ltu_u32({f32}, {f32}) | 0.3
u32 | op_set_leu_u32({f32}, {f32}) | 0.3
u32 | op_set_gtu_u32({f32}, {f32}) | 0.3
u32 | op_set_geu_u32({f32}, {f32}) | 0.3
u32 | op_set_num_u32({f32}, {f32}) | 0.3
u32 | op_set_nan_u32({f32}, {f32}) | 0.3
u32 | op_set_lt_ftz_u32({f32}, {f32}) | 0.3
u32 | op_set_eq_ftz_u32({f32}, {f32}) | 0.3
u32 | op_set_ltu_f64({f64}, {f64}) | 0.3
u32 | op_set_neu_f64({f64}, {f64}) | 0.3
u32 | op_set_nan_f64({f64}, {f64}) | 0.3
u32 | op_testp_finite({f32}) | 0.3
u32 | op_testp_infinite({f32}) | 0.3
u32 | op_testp_number({f32}) | 0.3
u32 | op_testp_notanumber({f32}) | 0.3
u32 | op_testp_normal({f32}) | 0.3
u32 | op_testp_subnormal({f32}) | 0.3
u32 | op_testp_finite_f64({f64}) | 0.2
u32 | op_testp_normal_f64({f64}) | 0.2
u32 | op_testp_subnormal_f64({f64}) | 0.2
u32 | op_setp_ltu_and_f32({f32}, {f32}, {u32}) | 0.5
u32 | op_setp_ge_or_f32({f32}, {f32}, {u32}) | 0.5
u32 | op_setp_nan_xor_f64({f64}, {f64}, {u32}) | 0.5
""".replace("u32 | ((u32)bits({f32}) & 0x7f800000u) >> 23", "u32 | (((u32)bits({f32}) & 0x7f800000u) >> 23)"))

operations("""
f64 | ({f64} + {f64}) | 5
f64 | ({f64} - {f64}) | 4
f64 | ({f64} * {f64}) | 5
f64 | ({f64} / {f64}) | 0.5
f64 | ({f64} + {=f64})
f64 | ({f64} * {=f64})
f64 | __fma_rn({f64}, {f64}, {f64}) | 4
f64 | __fma_rn(-{f64}, {f64}, -{f64})
f64 | __fma_rn({f64}, {=f64}, {f64})
f64 | (-{f64}) | 2
f64 | fabs({f64}) | 2
f64 | (fabs({f64}) - fabs({f64}))
f64 | fmin({f64}, {f64})
f64 | fmax({f64}, {f64})
f64 | ({bool} ? {f64} : {f64}) | 2
f64 | copysign({f64}, canonical({f64}))
f64 | rint({f64}) | 0.7
f64 | floor({f64}) | 0.7
f64 | ceil({f64}) | 0.7
f64 | trunc({f64}) | 0.7
f64 | round({f64}) | 0.5
f64 | sqrt({f64}) | 0.4
f64 | as_f64({u64})
f64 | as_f64(({u64} & 0x800fffffffffffffull) | 0x3ff0000000000000ull)
f64 | __dadd_rz({f64}, {f64}) | 0.7
f64 | __dadd_ru({f64}, {f64}) | 0.7
f64 | __dadd_rd({f64}, {f64}) | 0.7
f64 | __dsub_ru({f64}, {f64}) | 0.4
f64 | __dmul_rz({f64}, {f64}) | 0.7
f64 | __dmul_ru({f64}, {f64}) | 0.7
f64 | __dmul_rd({f64}, {f64}) | 0.7
f64 | __fma_rz({f64}, {f64}, {f64}) | 0.7
f64 | __fma_ru({f64}, {f64}, {f64}) | 0.7
f64 | __fma_rd({f64}, {f64}, {f64}) | 0.7
f64 | __ddiv_rz({f64}, {f64}) | 0.15
f64 | __ddiv_ru({f64}, {f64}) | 0.15
f64 | __drcp_rn({f64}) | 0.2
f64 | __drcp_rd({f64}) | 0.15
f64 | __dsqrt_rz({f64}) | 0.15
f64 | op_min_f64({f64}, {f64}) | 0.5
f64 | op_max_f64({f64}, {f64}) | 0.5
f64 | fmod({f64}, {f64}) | 0.06
f64 | ldexp({f64}, ({i32}) >> 24) | 0.15
""")

# Approximations: their values are the hardware's own. A compiler that knows the operand may compute another.
operations("""
f32 | __sinf(unknown({f32})) | 0.15
f32 | __cosf(unknown({f32})) | 0.15
f32 | __expf(unknown({f32})) | 0.15
f32 | __logf(unknown({f32})) | 0.15
f32 | __fdividef(unknown({f32}), unknown({f32})) | 0.15
f32 | __frsqrt_rn(unknown({f32})) | 0.15
f32 | op_rcp_approx(unknown({f32})) | 0.15
f32 | op_rcp_approx_ftz(unknown({f32})) | 0.15
f32 | op_sqrt_approx(unknown({f32})) | 0.15
f32 | op_sqrt_approx_ftz(unknown({f32})) | 0.15
f32 | op_rsqrt_approx(unknown({f32})) | 0.15
f32 | op_rsqrt_approx_ftz(unknown({f32})) | 0.15
f32 | op_ex2_approx(unknown({f32})) | 0.15
f32 | op_ex2_approx_ftz(unknown({f32})) | 0.15
f32 | op_lg2_approx(unknown({f32})) | 0.15
f32 | op_lg2_approx_ftz(unknown({f32})) | 0.15
f32 | op_sin_approx(unknown({f32})) | 0.15
f32 | op_sin_approx_ftz(unknown({f32})) | 0.15
f32 | op_cos_approx(unknown({f32})) | 0.15
f32 | op_cos_approx_ftz(unknown({f32})) | 0.15
f32 | op_div_full(unknown({f32}), unknown({f32})) | 0.15
f32 | op_div_full_ftz(unknown({f32}), unknown({f32})) | 0.15
f32 | op_div_approx(unknown({f32}), unknown({f32})) | 0.15
f64 | op_rcp_approx_ftz_f64(unknown({f64})) | 0.15
f64 | op_rsqrt_approx_f64(unknown({f64})) | 0.15
f64 | op_rsqrt_approx_ftz_f64(unknown({f64})) | 0.15
f32 | sinf(unknown({f32})) | 0.05
f32 | cosf(unknown({f32})) | 0.05
f32 | expf(unknown({f32})) | 0.06
f32 | exp2f(unknown({f32})) | 0.06
f32 | logf(unknown({f32})) | 0.06
f32 | log2f(unknown({f32})) | 0.06
f32 | powf(unknown({f32}), unknown({f32})) | 0.04
f32 | atan2f(unknown({f32}), unknown({f32})) | 0.04
f32 | tanhf(unknown({f32})) | 0.05
f32 | erff(unknown({f32})) | 0.05
f32 | cbrtf(unknown({f32})) | 0.05
f32 | rsqrtf(unknown({f32})) | 0.1
f64 | exp(unknown({f64})) | 0.03
f64 | log(unknown({f64})) | 0.03
f64 | cbrt(unknown({f64})) | 0.03
""", host=False)
