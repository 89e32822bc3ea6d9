"""Tests of what compiles, runs, compares and reduces programs; those on the host need g++ alone."""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import compare  # noqa: E402
import compile as compiling  # noqa: E402
import judge  # noqa: E402
import reduce as reducing  # noqa: E402
import ways  # noqa: E402
from generator import contents  # noqa: E402

SIGNATURE = "const unsigned char *input, unsigned long long *output, unsigned char *memory"


class Comparison(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, text):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(text)
        return path

    def test_kernels_that_differ_are_found_and_absent_ones_are_not_differences(self):
        first = compare.read(self.file("a", "p1 k0 0123456789abcdef\np1 k1 error 719\np2 k0 00000000deadbeef\n"))
        second = compare.read(self.file("b", "p1 k0 0123456789abcdee\np1 k1 error 719\n"))
        self.assertEqual(compare.differences(first, second), [("p1", "k0")])
        lines, differs = compare.report(["a", "b"], [first, second])
        self.assertTrue(differs)
        self.assertIn("1 wrong values, 0 errors, 1 absent", lines[-1])

    def test_nothing_in_common_is_no_agreement(self):
        self.assertTrue(compare.report(["a", "b"], [{("p1", "k0"): "e1"}, {("p2", "k0"): "e1"}])[1])

    def test_a_golden_file_holds_what_was_recorded(self):
        results = compare.read(self.file("a", "p10 k0 0123456789abcdef\np10 k2 error hang\np2 k0 error 719\n"))
        text = compare.golden(results, [("gpu", "H200"), ("cuda", None)])
        self.assertEqual(text, "# gpu H200\np2 e719\np10 01234567 - ehang\n")
        golden = compare.read(self.file("golden", text))
        self.assertEqual(compare.differences(golden, results), [])
        results["p10", "k0"] = "0123456889abcdef"
        self.assertEqual(compare.differences(golden, results), [("p10", "k0")])

    def test_seeds_are_shortened(self):
        self.assertEqual(compare.spans({1, 2, 3, 7, 9, 10}), "1-3 7 9-10")


class Compilation(unittest.TestCase):
    def test_text_is_lowered_for_the_older_assembler(self):
        text = compiling.lowered("//\n.version 9.3\n.target sm_75, debug\n.version 9.3\n", "sm_70")
        self.assertEqual(text, f"//\n.version {compiling.OLD_PTX}\n.target sm_70, debug\n.version 9.3\n")

    def test_the_front_end_never_gets_an_architecture_that_it_dropped(self):
        self.assertEqual(compiling.front_architecture("sm_70"), "compute_75")
        self.assertEqual(compiling.front_architecture("sm_90a"), "compute_90a")

    def test_kernels_for_later_architectures_are_left_out(self):
        text = "symbol a 4\nk0 grid 1 1 1\nk1 grid 1 1 1 arch 90\n"
        self.assertEqual(compiling.manifest(text, "sm_80"), "symbol a 4\nk0 grid 1 1 1\n")
        self.assertEqual(compiling.manifest(text, "sm_90a"), text)

    def test_a_compiler_that_fails_says_why(self):
        with self.assertRaisesRegex(compiling.Failed, "exit code 3: an error"):
            compiling.call(["sh", "-c", "echo noise; echo an error >&2; exit 3"])

    def test_ways_are_checked(self):
        self.assertEqual(ways.is_way("timing:O0"), "timing:O0")
        with self.assertRaises(argparse.ArgumentTypeError):
            ways.is_way("functional:O9")


class Reduction(unittest.TestCase):
    SOURCE = "#include <a>\nint f(int a)\n{\n    return a;\n}\n" + "".join(
        f"__global__ void k{n}(int *p)\n{{\n    int a = 1;\n    int b = (a + (2 * a));\n    if (a)\n    {{\n        p[0] = f(b);\n        p[1] = {n};\n    }}\n    else\n    {{\n        p[2] = 3;\n    }}\n}}\n"
        for n in range(3))
    MANIFEST = "".join(f"k{n} grid 4 1 1 block 96 1 1\n" for n in range(3))

    def test_lines_are_kept_by_reading_them(self):
        lines = self.SOURCE.splitlines()
        self.assertEqual(reducing.lines_of(reducing.parse(lines)), lines)

    def test_expressions_become_their_parts(self):
        found = list(reducing.simpler("    u32 a = (b + f(c, 3u));"))
        self.assertIn("    u32 a = 0;", found)
        self.assertIn("    u32 a = b;", found)
        self.assertIn("    u32 a = (b + (c));", found)

    def test_what_a_command_wants_remains(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "p3.cu").write_text(self.SOURCE)
            (folder / "p3.txt").write_text(self.MANIFEST)
            command = "sh -c 'grep -q \"p.1. = 1\" $0/p3.cu && grep -q ^k1 $0/p3.txt'"
            subprocess.run([sys.executable, ROOT / "reduce.py", folder / "p3.cu", "k1", "--command", command, "--out", folder / "out"],
                           check=True, capture_output=True)
            source = (folder / "out/p3.cu").read_text()
            self.assertIn("p[1] = 1;", source)
            for gone in ("f(", "p[0]", "p[2]", "k0", "k2", "int b", "else"):
                self.assertNotIn(gone, source)
            self.assertEqual((folder / "out/p3.txt").read_text(), "k1 grid 1 1 1 block 32 1 1\n")


class Translation(unittest.TestCase):
    def test_inline_ptx_becomes_a_call(self):
        text = judge.without_asm('u32 f(u32 a) { u32 r; asm volatile("x.u32 %0, %1;\\n" : "=r"(r) : "r"((a)) : "memory"); return r; }')
        self.assertNotIn("asm", text)
        self.assertIn('host::read("x.u32 %0, %1;\\n")', text)
        self.assertIn("{0, host::word((a))}", text)
        self.assertIn("host::unword(r, values_[0])", text)

    def test_comments_and_quotes_are_left_alone(self):
        text = '// asm("a")\nconst char *a = "asm(";'
        self.assertEqual(judge.without_asm(text), text)


@unittest.skipUnless(shutil.which("g++"), "needs g++")
class Host(unittest.TestCase):
    def run_kernels(self, kernels, top="", block="32 1 1", **options):
        """What kernels with these bodies give, as words."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            source = ['#define NEEDS_TOGETHER', '#include "program.cuh"', top]
            manifest = []
            for number, body in enumerate(kernels):
                source.append(f'extern "C" __global__ void k{number}({SIGNATURE})\n{{\n{body}\n}}')
                manifest.append(f"k{number} grid 2 1 1 block {block} shared 0 input 64 output 192 memory 16 cooperative 0")
            (folder / "p5.cu").write_text("\n".join(source))
            (folder / "p5.txt").write_text("\n".join(manifest) + "\n")
            lines, failures, said = judge.judge(folder, folder / "out", **options)
            self.assertEqual(failures, {})
            return [line.split(" ", 2)[2] for line in lines], said

    def same(self, one, other, **options):
        results, said = self.run_kernels([one, other], **options)
        self.assertEqual(len(results), 2, said)
        self.assertRegex(results[0], "^[0-9a-f]{16}$")
        self.assertEqual(results[0], results[1])

    PLACE = "u32 i = blockIdx.x * blockDim.x + threadIdx.x;\n"

    def test_lanes_exchange_and_vote(self):
        self.same(self.PLACE + "output[i] = __shfl_xor_sync(0xffffffffu, i, 5) + (__ballot_sync(0xffffffffu, i & 1) << 8) + __shfl_up_sync(0xffffffffu, i, 3, 8);",
                  self.PLACE + "output[i] = (i ^ 5) + (0xaaaaaaaau << 8) + ((i & 7) < 3 ? i : i - 3);")

    def test_lanes_meet_from_different_branches(self):
        self.same(self.PLACE + "u32 v;\nif (threadIdx.x & 1)\n{\nv = __shfl_sync(0xaaaaaaaau, i, 31);\n__syncwarp();\n}\nelse\n{\nv = __shfl_sync(0x55555555u, i, 2);\n__syncwarp();\n}\noutput[i] = v;",
                  self.PLACE + "output[i] = blockIdx.x * 32 + (threadIdx.x & 1 ? 31 : 2);")

    def test_threads_of_a_block_meet(self):
        self.same(self.PLACE + "__shared__ u32 s[96];\ns[threadIdx.x] = i;\n__syncthreads();\noutput[i] = s[95 - threadIdx.x] + (u32)__syncthreads_count(threadIdx.x % 3 == 0);",
                  self.PLACE + "output[i] = blockIdx.x * 96 + 95 - threadIdx.x + 32;", block="96 1 1")

    def test_threads_that_spin_get_their_turn(self):
        results, _ = self.run_kernels([self.PLACE + "__shared__ volatile u32 turn;\nif (threadIdx.x == 0)\nturn = 0;\n__syncthreads();\nwhile (turn != threadIdx.x)\n{\n}\noutput[i] = threadIdx.x;\nturn = threadIdx.x + 1;",
                                       self.PLACE + "output[i] = threadIdx.x;"], block="8 1 1")
        self.assertEqual(results[0], results[1])

    def test_a_barrier_that_some_never_reach_is_a_deadlock(self):
        results, _ = self.run_kernels(["if (threadIdx.x < 31)\n{\nmeet_apart(1, 64);\n}"])
        self.assertEqual(results, ["error deadlock"])

    def test_shared_memory_that_nobody_wrote_shows_by_its_fill(self):
        body = [self.PLACE + "__shared__ u32 s[32];\noutput[i] = s[threadIdx.x];"]
        self.assertNotEqual(self.run_kernels(body, fill=0)[0], self.run_kernels(body, fill=255)[0])

    def test_what_has_no_twin_is_left_out(self):
        results, said = self.run_kernels([self.PLACE + "output[i] = bits(op_rcp_approx(as_f32(i)));", "output[0] = 1;"])
        self.assertEqual(len(results), 1)
        self.assertIn("k0 skip", said)

    def test_roundings_and_denormals(self):
        self.same(self.PLACE + "output[i] = bits(__fadd_ru(1.0f, 1e-30f)) ^ bits(op_add_ftz(as_f32(1u), as_f32(2u))) << 32;",
                  self.PLACE + "output[i] = 0x3f800001u;")

    def test_inline_ptx_with_predicates_and_carries(self):
        self.same(self.PLACE + "output[i] = op_setp_lt_and_u32(1u, 2u, 1u) | (u64)op_add_carry(~0u, ~0u, ~0u, 1u, 0u, 0u) << 32;",
                  self.PLACE + "output[i] = 1u | (u64)7u << 32;")


@unittest.skipUnless(shutil.which("g++"), "needs g++")
class Contents(unittest.TestCase):
    def test_the_runner_fills_what_the_generator_says(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "a.cpp"
            source.write_text(f'#include "{ROOT}/include/manifest.h"\nint main() {{ for (int k = 0; k < 3; k++) for (int j = 0; j < 200; j++) printf("%llx\\n", (unsigned long long)content(77, 5, (Kind)k, j)); }}')
            subprocess.run(["g++", "-std=c++17", source, "-o", source.with_suffix("")], check=True)
            words = subprocess.run([source.with_suffix("")], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(words, [f"{contents.word(77, 5, kind, j):x}" for kind in range(3) for j in range(200)])


if __name__ == "__main__":
    unittest.main()
