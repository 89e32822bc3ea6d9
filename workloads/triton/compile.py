#!/usr/bin/env python3
"""Compiles kernels.py for sm_90 and writes each cubin, as C++ text, beside the program that launches it.

    TRITON_PTXAS_BLACKWELL_PATH=.../ptxas compile.py        needs a Python with Triton and the ptxas of nvcc; no GPU

The host programs embed what this writes, so that building and running them needs no Triton. Two warps a program
for products: tensor cores are then used through `mma.sync`.
"""

import os
import pathlib

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # the cubin then depends on the code alone
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"

import triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

import kernels  # noqa: E402

WORKLOADS = pathlib.Path(__file__).resolve().parent.parent
TARGET = GPUTarget("cuda", 90, 32)
ALIGNED = [["tt.divisibility", 16]]

# program -> kernel, types of its arguments (a star is a pointer, `/16` a multiple of 16), constants, warps, stages
PROGRAMS = {
    "triton_softmax": (kernels.softmax_rows, ["*fp32/16", "*fp32/16", "i32"], {"BLOCK": 1024}, 4, 1),
    "triton_layer_norm": (
        kernels.layer_norm_rows,
        ["*fp32/16", "*fp32/16", "*fp32/16", "*fp32/16", "i32", "fp32"],
        {"BLOCK": 512},
        4,
        1,
    ),
    "triton_matmul": (
        kernels.matmul_bias_relu,
        ["*fp16/16", "*fp16/16", "*fp16/16", "*fp16/16", "i32/16", "i32/16", "i32/16"],
        {"M": 64, "N": 64, "K": 32},
        2,
        3,
    ),
    "triton_attention": (
        kernels.attention_forward,
        ["*fp16/16", "*fp16/16", "*fp16/16", "*fp16/16", "i32/16", "fp32"],
        {"M": 32, "N": 32, "D": 64},
        2,
        2,
    ),
}


def compiled(kernel, types, constants, warps, stages):
    names = [name for name in kernel.arg_names if name not in constants]
    signature = {name: kind.split("/")[0] for name, kind in zip(names, types, strict=True)}
    attributes = {(i,): ALIGNED for i, kind in enumerate(types) if kind.endswith("/16")}
    signature |= {name: "constexpr" for name in constants}
    source = ASTSource(kernel, signature, {(kernel.arg_names.index(n),): v for n, v in constants.items()}, attributes)
    return triton.compile(source, target=TARGET, options={"num_warps": warps, "num_stages": stages})


def main():
    for program, (kernel, types, constants, warps, stages) in PROGRAMS.items():
        result = compiled(kernel, types, constants, warps, stages)
        cubin = result.asm["cubin"]
        lines = [
            f"// Written by workloads/triton/compile.py with Triton {triton.__version__}; do not edit.",
            "#pragma once",
            f"constexpr unsigned CUBIN_THREADS = {warps * 32};",
            f"constexpr unsigned CUBIN_SHARED = {result.metadata.shared};",
            "alignas(16) static const unsigned char CUBIN[] = {",
        ]
        for start in range(0, len(cubin), 40):
            lines.append("".join(f"{byte}," for byte in cubin[start : start + 40]))
        lines.append("};")
        (WORKLOADS / program / "cubin.cuh").write_text("\n".join(lines) + "\n")
        print(f"{program}: {result.metadata.name}, {len(cubin)} bytes, {result.metadata.shared} bytes shared")
        print("   ", " ".join(line.strip() for line in result.asm["ptx"].splitlines() if ".param" in line)[:300])


if __name__ == "__main__":
    main()
