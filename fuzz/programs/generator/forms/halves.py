"""Operations on halves and bfloat16 numbers, alone and in pairs.

Sums and products are the `_rn` ones, which no compiler contracts.
"""

from ..kernel import operations

COMMON = """
{T} | __hadd_rn({{T}}, {{T}}) | 4
{T} | __hsub_rn({{T}}, {{T}}) | 3
{T} | __hmul_rn({{T}}, {{T}}) | 4
{T} | __hadd_rn({{T}}, {{=T}}) | 2
{T} | __hmul_rn({{T}}, {{=T}}) | 2
{T} | __hfma({{T}}, {{T}}, {{T}}) | 4
{T} | __hfma({{T}}, {{=T}}, {{T}}) | 2
{T} | __hfma({{T}}, {{T}}, {{=T}})
{T} | __hfma(__hneg({{T}}), {{T}}, __hneg({{T}})) | 2
{T} | __hfma_relu({{T}}, {{T}}, {{T}})
{T} | __hfma_sat({{T}}, {{T}}, {{T}})
{T} | __hadd_sat({{T}}, {{T}})
{T} | __hmul_sat({{T}}, {{T}})
{T} | __hneg({{T}}) | 2
{T} | __habs({{T}}) | 2
{T} | __hadd_rn(__habs({{T}}), __hneg({{T}}))
{T} | __hmin({{T}}, {{T}})
{T} | __hmax({{T}}, {{T}})
{T} | __hmin_nan({{T}}, {{T}})
{T} | __hmax_nan({{T}}, {{T}})
{T} | ({{bool}} ? {{T}} : {{T}}) | 2
{T} | {LOW}({{P}}) | 2
{T} | {HIGH}({{P}}) | 2
{T} | {FROM}_rn({{f32}}) | 2
{T} | {FROM}_rz({{f32}})
{T} | {FROM}_ru({{f32}})
{T} | {FROM}_rd({{f32}})
{T} | {FROM}_rn(as_f32({{u32}}))
{T} | __int2{N}_rn({{i32}}) | 0.5
{T} | __int2{N}_rz({{i32}}) | 0.3
{T} | __uint2{N}_ru({{u32}}) | 0.3
{T} | __ushort2{N}_rn({{u16}}) | 0.3
{T} | __short2{N}_rd({{i16}}) | 0.3
{T} | __ll2{N}_rn({{i64}}) | 0.2
{T} | __ull2{N}_rn({{u64}}) | 0.2
{T} | __double2{D}({{f64}}) | 0.5
{T} | as_{T}({{u32}})
{T} | as_{T}({{u32}} >> 16)
{T} | hrint({{T}}) | 0.5
{T} | hfloor({{T}}) | 0.5
{T} | hceil({{T}}) | 0.5
{T} | htrunc({{T}}) | 0.5
i32 | __{N}2int_rn({{T}}) | 0.3
i32 | __{N}2int_ru({{T}}) | 0.3
u32 | __{N}2uint_rd({{T}}) | 0.3
u32 | __{N}2uint_rz({{T}}) | 0.3
i16 | __{N}2short_rn({{T}}) | 0.3
u16 | __{N}2ushort_ru({{T}}) | 0.3
i64 | __{N}2ll_rn({{T}}) | 0.2
u64 | __{N}2ull_rd({{T}}) | 0.2
f32 | to_f32({{T}}) | 2
f32 | {LOWF}({{P}}) | 1
f32 | {HIGHF}({{P}}) | 1
u32 | (u32)bits({{T}})
u32 | (u32)bits({{P}}) | 2
{P} | __hadd2_rn({{P}}, {{P}}) | 4
{P} | __hsub2_rn({{P}}, {{P}}) | 3
{P} | __hmul2_rn({{P}}, {{P}}) | 4
{P} | __hadd2_rn({{P}}, {{=P}}) | 2
{P} | __hmul2_rn({{=P}}, {{P}}) | 2
{P} | __hfma2({{P}}, {{P}}, {{P}}) | 4
{P} | __hfma2({{P}}, {{=P}}, {{P}}) | 2
{P} | __hfma2({{P}}, {{P}}, {{=P}})
{P} | __hfma2(__hneg2({{P}}), {{P}}, __hneg2({{P}})) | 2
{P} | __hfma2_relu({{P}}, {{P}}, {{P}})
{P} | __hfma2_sat({{P}}, {{P}}, {{P}})
{P} | __hadd2_sat({{P}}, {{P}})
{P} | __hmul2_sat({{P}}, {{P}})
{P} | __hneg2({{P}}) | 2
{P} | __habs2({{P}}) | 2
{P} | __hadd2_rn(__habs2({{P}}), {SWAP}({{P}}))
{P} | __hfma2({PAIR}({{T}}), {{P}}, {SWAP}({{P}}))
{P} | __hmul2_rn({LOWS}({{P}}, {{P}}), {{P}})
{P} | __hmin2({{P}}, {{P}})
{P} | __hmax2({{P}}, {{P}})
{P} | __hmin2_nan({{P}}, {{P}})
{P} | __hmax2_nan({{P}}, {{P}})
{P} | __hlt2({{P}}, {{P}}) | 0.5
{P} | __heq2({{P}}, {{P}}) | 0.5
{P} | __hgeu2({{P}}, {{P}}) | 0.5
{P} | __hneu2({{P}}, {{P}}) | 0.5
u32 | __hlt2_mask({{P}}, {{P}}) | 0.5
u32 | __hgeu2_mask({{P}}, {{P}}) | 0.5
u32 | __hne2_mask({{P}}, {{P}}) | 0.5
{P} | ({{bool}} ? {{P}} : {{P}}) | 2
{P} | {JOIN}({{T}}, {{T}}) | 3
{P} | {PAIR}({{T}}) | 2
{P} | {SWAP}({{P}}) | 2
{P} | {LOWS}({{P}}, {{P}})
{P} | {HIGHS}({{P}}, {{P}})
{P} | {FROM2}({{f32}}, {{f32}}) | 2
{P} | as_{P}({{u32}}) | 2
{P} | h2rint({{P}}) | 0.3
{P} | h2floor({{P}}) | 0.3
bool | __hlt({{T}}, {{T}})
bool | __hge({{T}}, {{=T}})
bool | __heq({{T}}, {{T}})
bool | __hne({{T}}, {{T}})
bool | __hltu({{T}}, {{T}})
bool | __hgeu({{T}}, {{T}}) | 0.5
bool | __hneu({{T}}, {{T}}) | 0.5
bool | __hisnan({{T}})
bool | __hblt2({{P}}, {{P}}) | 0.5
bool | __hbge2({{P}}, {{P}}) | 0.5
bool | __hbneu2({{P}}, {{P}}) | 0.5
"""
APPROXIMATE = """
{T} | hsqrt(unknown({{T}})) | 0.1
{T} | hrcp(unknown({{T}})) | 0.1
{T} | hrsqrt(unknown({{T}})) | 0.1
{T} | hexp2(unknown({{T}})) | 0.1
{T} | hexp(unknown({{T}})) | 0.1
{T} | hlog(unknown({{T}})) | 0.1
{T} | hsin(unknown({{T}})) | 0.1
{T} | hcos(unknown({{T}})) | 0.1
{T} | __hdiv(unknown({{T}}), unknown({{T}})) | 0.2
{P} | h2sqrt(unknown({{P}})) | 0.1
{P} | h2rcp(unknown({{P}})) | 0.1
{P} | h2exp2(unknown({{P}})) | 0.1
{P} | __h2div(unknown({{P}}), unknown({{P}})) | 0.1
"""

HALF = {
    "{T}": "f16", "{{T}}": "{f16}", "{{=T}}": "{=f16}", "{P}": "f16x2", "{{P}}": "{f16x2}", "{{=P}}": "{=f16x2}", "{N}": "half", "{D}": "half",
    "{LOW}": "__low2half", "{HIGH}": "__high2half", "{LOWF}": "__low2float", "{HIGHF}": "__high2float", "{FROM}": "__float2half",
    "{SWAP}": "__lowhigh2highlow", "{PAIR}": "__half2half2", "{LOWS}": "__lows2half2", "{HIGHS}": "__highs2half2",
    "{JOIN}": "__halves2half2", "{FROM2}": "__floats2half2_rn",
}
BFLOAT = {
    "{T}": "bf16", "{{T}}": "{bf16}", "{{=T}}": "{=bf16}", "{P}": "bf16x2", "{{P}}": "{bf16x2}", "{{=P}}": "{=bf16x2}", "{N}": "bfloat16", "{D}": "bfloat16",
    "{LOW}": "__low2bfloat16", "{HIGH}": "__high2bfloat16", "{LOWF}": "__low2float", "{HIGHF}": "__high2float", "{FROM}": "__float2bfloat16",
    "{SWAP}": "__lowhigh2highlow", "{PAIR}": "__bfloat162bfloat162", "{LOWS}": "__lows2bfloat162", "{HIGHS}": "__highs2bfloat162",
    "{JOIN}": "__halves2bfloat162", "{FROM2}": "__floats2bfloat162_rn",
}


def named(table, names):
    """The table in the words of one kind of half."""
    for key in sorted(names, key=len, reverse=True):
        table = table.replace(key, names[key])
    return table.replace("{{", "{").replace("}}", "}")


for names, need in ((HALF, "half"), (BFLOAT, "bf16")):
    operations(named(COMMON, names), need=need)
    operations(named(APPROXIMATE, names), need=need, host=False)
