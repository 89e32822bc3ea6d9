"""Operations on several bytes or halves of a word."""

from ..kernel import operations

PAIRS = "abs2 abs4 absss2 absss4 neg2 neg4 negss2 negss4".split()
TWO = """absdiffs2 absdiffs4 absdiffu2 absdiffu4 add2 add4 addss2 addss4 addus2 addus4 avgs2 avgs4 avgu2 avgu4
cmpeq2 cmpeq4 cmpges2 cmpges4 cmpgeu2 cmpgeu4 cmpgts2 cmpgts4 cmpgtu2 cmpgtu4 cmples2 cmples4 cmpleu2 cmpleu4 cmplts2 cmplts4 cmpltu2 cmpltu4 cmpne2 cmpne4
haddu2 haddu4 maxs2 maxs4 maxu2 maxu4 mins2 mins4 minu2 minu4 sads2 sads4 sadu2 sadu4
seteq2 seteq4 setges2 setges4 setgeu2 setgeu4 setgts2 setgts4 setgtu2 setgtu4 setles2 setles4 setleu2 setleu4 setlts2 setlts4 setltu2 setltu4 setne2 setne4
sub2 sub4 subss2 subss4 subus2 subus4""".split()

for name in PAIRS:
    operations(f"u32 | __v{name}({{u32}}) | 0.12")
for name in TWO:
    operations(f"u32 | __v{name}({{u32}}, {{u32}}) | 0.1")

operations("""
i32 | op_dp4a_ss({u32}, {u32}, {i32})
i32 | op_dp4a_su({u32}, {u32}, {i32})
i32 | op_dp4a_us({u32}, {u32}, {i32})
u32 | op_dp4a_uu({u32}, {u32}, {u32})
i32 | op_dp4a_ss({u32}, {=u32}, {i32})
i32 | op_dp2a_lo_ss({u32}, {u32}, {i32}) | 0.5
i32 | op_dp2a_lo_su({u32}, {u32}, {i32}) | 0.5
i32 | op_dp2a_lo_us({u32}, {u32}, {i32}) | 0.5
u32 | op_dp2a_lo_uu({u32}, {u32}, {u32}) | 0.5
i32 | op_dp2a_hi_ss({u32}, {u32}, {i32}) | 0.5
i32 | op_dp2a_hi_us({u32}, {u32}, {i32}) | 0.5
u32 | op_dp2a_hi_uu({u32}, {u32}, {u32}) | 0.5
u32 | op_vadd_b1_h1({u32}, {u32}, {u32}) | 0.2
u32 | op_vsub_sat_min({u32}, {u32}, {u32}) | 0.2
u32 | op_vabsdiff_max({u32}, {u32}, {u32}) | 0.2
u32 | op_vmin_add({u32}, {u32}, {u32}) | 0.2
u32 | op_vmax_min({u32}, {u32}, {u32}) | 0.2
u32 | op_vshl_clamp({u32}, {u32}, {u32}) | 0.2
u32 | op_vshr_wrap({u32}, {u32}, {u32}) | 0.2
u32 | op_vmad_po({u32}, {u32}, {u32}) | 0.2
u32 | op_vset_lt_add({u32}, {u32}, {u32}) | 0.2
u32 | op_vset_ge_max({u32}, {u32}, {u32}) | 0.2
""")

# Minimum and maximum of three, after an addition, with a floor of zero, and with the place of the winner. Where an
# architecture has no such instruction the sum is one of C++, which must not overflow.
for which in ("max", "min"):
    operations(f"""
    i32 | __viadd{which}_s32({{i32}} >> 1, {{i32}} >> 1, {{i32}}) | 0.6
    i32 | __viadd{which}_s32_relu({{i32}} >> 1, {{i32}} >> 1, {{i32}}) | 0.6
    u32 | __viadd{which}_u32({{u32}}, {{u32}}, {{u32}}) | 0.6
    u32 | __viadd{which}_s16x2({{u32}}, {{u32}}, {{u32}}) | 0.6
    u32 | __viadd{which}_s16x2_relu({{u32}}, {{u32}}, {{u32}}) | 0.6
    u32 | __viadd{which}_u16x2({{u32}}, {{u32}}, {{u32}}) | 0.6
    i32 | __vi{which}3_s32({{i32}}, {{i32}}, {{i32}}) | 0.6
    i32 | __vi{which}3_s32_relu({{i32}}, {{i32}}, {{i32}}) | 0.6
    u32 | __vi{which}3_u32({{u32}}, {{u32}}, {{u32}}) | 0.6
    u32 | __vi{which}3_s16x2({{u32}}, {{u32}}, {{u32}}) | 0.6
    u32 | __vi{which}3_s16x2_relu({{u32}}, {{u32}}, {{u32}}) | 0.6
    u32 | __vi{which}3_u16x2({{u32}}, {{u32}}, {{u32}}) | 0.6
    i32 | __vi{which}_s32_relu({{i32}}, {{i32}}) | 0.6
    u32 | __vi{which}_s16x2_relu({{u32}}, {{u32}}) | 0.6
    i32 | vib{which}_s32({{i32}}, {{i32}}) | 0.6
    u32 | vib{which}_u32({{u32}}, {{u32}}) | 0.6
    u32 | vib{which}_s16x2({{u32}}, {{u32}}) | 0.6
    u32 | vib{which}_u16x2({{u32}}, {{u32}}) | 0.6
    """)
