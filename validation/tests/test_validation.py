"""The scripts of `validation/` and `workloads/`: their pure parts."""

import argparse
import pathlib
import struct
import tempfile
import unittest

from tests import support

LOCKSTEP = support.simulator()
METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1\nLicense: {licence}\n{more}\n"


def metadata(name, licence, more=""):
    return METADATA.format(name=name, licence=licence, more=more)


class Ranks(unittest.TestCase):
    def test_a_program_has_one_digest_is_refused_or_is_wrong(self):
        verdict = support.script("validation/compare_ranks.py").verdict
        self.assertEqual(verdict(["a1", "a1", "a1"]), "equal")
        self.assertEqual(verdict(["a1", "a1", "refused: it waits"]), "refused")
        for wrong in [["a1", "b2"], ["a1", "ended with 1: oops"], ["ended with 1: oops"] * 2, ["refused: it waits"] * 2]:
            self.assertEqual(verdict(wrong), "DIFFERENT")


class Corpus(unittest.TestCase):
    def setUp(self):
        self.corpus = support.script("validation/corpus.py")

    def test_an_open_wheel_is_read(self):
        self.corpus.checked(metadata("bitsandbytes", "MIT"))
        bsd = "Redistribution and use in source and\n binary forms, with or without modification"
        self.corpus.checked(metadata("nvidia_nccl_cu12", "NVIDIA Proprietary Software"), bsd)

    def test_closed_libraries_are_refused(self):
        for name in ["nvidia-cublas-cu12", "nvidia-cudnn-cu12", "nvidia-cufft", "unknown"]:
            with self.assertRaises(self.corpus.Refused) as refused:
                self.corpus.checked(metadata(name, "BSD"))
            self.assertIn("not in the list", str(refused.exception))

    def test_a_listed_wheel_that_calls_itself_proprietary_is_refused(self):
        for licence, more in [("NVIDIA Proprietary Software", ""), ("BSD", "Classifier: License :: Other/Proprietary License"), ("", "")]:
            with self.assertRaises(self.corpus.Refused):
                self.corpus.checked(metadata("bitsandbytes", licence, more))

    def test_a_wheel_whose_licence_file_decides_is_refused_without_it(self):
        for file in ["", "NVIDIA Software License Agreement"]:
            with self.assertRaises(self.corpus.Refused):
                self.corpus.checked(metadata("nvidia-nccl-cu12", "BSD-3-Clause"), file)

    def test_a_wheel_that_may_contain_closed_libraries_is_refused(self):
        with self.assertRaises(self.corpus.Refused):
            self.corpus.checked(metadata("torch", "BSD-3-Clause"))
        self.corpus.checked(metadata("torch", "BSD-3-Clause", "Requires-Dist: nvidia-cublas-cu12==12.4; x"))

    def test_other_files_are_refused_with_what_there_is(self):
        with self.assertRaises(self.corpus.Refused) as refused:
            self.corpus.read(["libcublas.so"], 90, "/nowhere")
        self.assertIn("workloads", str(refused.exception))

    def test_a_cubin_that_triton_made_is_read_from_its_header(self):
        self.assertEqual(self.corpus.of_header("static const unsigned char CUBIN[] = {\n127,69,\n76,70,\n};"), b"\x7fELF")
        text = (support.ROOT / "workloads/triton_softmax/cubin.cuh").read_text()
        self.assertGreater(sum(len(code) for code in self.corpus.code(self.corpus.of_header(text))), 16)

    def test_only_sections_with_code_are_taken(self):
        head = bytearray(64)
        head[:4] = b"\x7fELF"
        struct.pack_into("<Q", head, 0x28, 64)
        struct.pack_into("<H", head, 0x3C, 2)
        section = lambda flags, size: struct.pack("<IIQQQQ", 0, 1, flags, 0, 192, size).ljust(64, b"\0")
        data = bytes(head) + section(6, 40) + section(2, 40) + bytes(range(40))
        self.assertEqual(list(self.corpus.code(data)), [bytes(range(32))])
        self.assertEqual(list(self.corpus.code(b"\x7fELF")), [])
        self.assertEqual(list(self.corpus.code(data[:100])), [])


class Disassembly(unittest.TestCase):
    def setUp(self):
        self.compare = support.script("validation/compare_disassembly.py")

    def test_a_listing_is_read_line_by_line(self):
        listing = "        /*0000*/                   MOV R1, c[0x0][0x28] ;\n.L_x:\n        /*0010*/              @P0 EXIT ;  /* 0x1 */\n"
        self.assertEqual(self.compare.lines_of(listing), ["MOV R1, c[0x0][0x28]", "@P0 EXIT"])

    def test_batches_hold_whole_sections(self):
        most = 16 * self.compare.BATCH
        sizes = [len(batch) for batch in self.compare.batches([b"x" * most, b"y" * 16, b"z" * 16])]
        self.assertEqual(sizes, [most, 32])


class RunAll(unittest.TestCase):
    def test_a_program_passes_by_its_code_and_its_own_word(self):
        run_all = support.script("workloads/run_all.py")
        self.assertEqual(run_all.judge("add", 0, "x\nPASS add fine\n"), ("pass", "PASS add fine"))
        self.assertEqual(run_all.judge("add", 1, "PASS add fine\n"), ("fail", "PASS add fine"))
        self.assertEqual(run_all.judge("add", 0, "core dumped\n"), ("fail", "core dumped"))
        self.assertEqual(run_all.judge("add", None, ""), ("timeout", ""))

    def test_programs_run_with_their_arguments_and_a_limit(self):
        run_all = support.script("workloads/run_all.py")
        program = argparse.Namespace(name="add", arguments=lambda size: ("7",))
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            self.assertEqual(run_all.run_one(program, "small", folder, 5, [])[0][1:3], ["fail", 127])
            support.command(folder / "add", "#!/bin/sh\necho PASS add $1\n")
            row, output = run_all.run_one(program, "small", folder, 5, [])
            self.assertEqual((row[1], row[2], row[4], output), ("pass", 0, "7", "PASS add 7\n"))
            support.command(folder / "add", "#!/bin/sh\nexec sleep 9\n")
            self.assertEqual(run_all.run_one(program, "small", folder, 0.1, [])[0][1:3], ["timeout", 124])


class Microbench(unittest.TestCase):
    def test_every_benchmark_has_a_source_and_its_name_before_its_lines(self):
        run = support.script("validation/run_microbench.py")
        for name in run.BENCHMARKS:
            self.assertTrue((support.VALIDATION / "microbench" / f"{name}.cu").exists(), name)
        self.assertEqual(run.lines("l2", "a,b\nc,d\n"), ["l2,a,b", "l2,c,d"])


class Measure(unittest.TestCase):
    def setUp(self):
        self.measure = support.script("validation/measure.py")

    def test_a_table_is_read_as_it_was_written(self):
        first = {("add/default", 0): ("add(int)", "(1, 1, 1)", "(32, 1, 1)", "16", "0", {"cycles": "10", "warps": "1"})}
        second = {("add/default", 0): ("add(int)", "(1, 1, 1)", "(32, 1, 1)", "16", "0", {"cycles": "12"})}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cold.csv"
            self.measure.write(path, ["date: today"], ["cycles", "warps"], [first, second])
            self.assertTrue(path.read_text().startswith("# date: today\nprogram,size,launch,kernel,"))
            self.assertEqual(self.measure.read_table(path), [first, second])

    def test_copies_become_repetitions(self):
        found = {("add/default#0", 0): "a", ("add/default#1", 0): "b"}
        self.assertEqual(self.measure.by_copy(found, 2), [{("add/default", 0): "a"}, {("add/default", 0): "b"}])

    @unittest.skipUnless(LOCKSTEP, "no simulator is built")
    def test_programs_that_launched_other_kernels_are_told(self):
        shape = ("add(int)", "(1, 1, 1)", "(32, 1, 1)", "16", "0")
        shapes = {("a/default", 0): shape, ("b/default", 0): shape, ("b/default", 1): shape}
        bare = lambda name: (name, "", "", "", "", {"cycles": "1"})
        found = {("a/default", 0): bare("_Z3addi"), ("b/default", 0): bare("_Z3addi")}
        right, wrong = self.measure.with_shapes(found, shapes)
        self.assertEqual((list(right), wrong), ([("a/default", 0)], {"b/default"}))
        self.assertEqual(right["a/default", 0], (*shape, {"cycles": "1"}))
        _, wrong = self.measure.with_shapes({("a/default", 0): bare("_Z5otheri")}, shapes)
        self.assertEqual(wrong, {"a/default"})


class Recheck(unittest.TestCase):
    def test_cycles_agree_within_the_widened_spread(self):
        recheck = support.script("validation/recheck.py")
        self.assertTrue(recheck.agrees([1000, 1010], [1400]))
        self.assertFalse(recheck.agrees([1000, 1010], [1420]))
        self.assertTrue(recheck.agrees([10000, 10100], [11100]))

    def test_counts_that_repeat_must_be_the_same(self):
        recheck = support.script("validation/recheck.py")
        old = {("a/default", 0): {"cycles": "1000 1010"}}
        new = {("a/default", 0): [{"cycles": "1005", "inst_executed": "64"}, {"cycles": "1005", "inst_executed": "65"}]}
        exact = {("a/default", 0): {"inst_executed": 64.0}}
        self.assertEqual(recheck.compare(old, new, exact), ([(("a/default", 0), "inst_executed", 64.0, "64")], []))
        self.assertEqual(recheck.compare(old, new, {}), ([], []))


class Lanes(unittest.TestCase):
    def setUp(self):
        self.lanes = support.script("validation/compare_lanes.py")

    def test_kernels_are_counted_by_name_and_form(self):
        self.assertEqual(self.lanes.group_of("loop trips 3"), "loop")
        self.assertEqual(self.lanes.group_of("queens 5 form 2"), "queens form 2")

    @unittest.skipUnless(LOCKSTEP, "no simulator is built")
    def test_launches_that_do_not_repeat_are_left_out(self):
        row = lambda kernel, counts: {"kernel": kernel, "inst_executed": counts, "thread_inst_executed": "9 9"}
        own = {"inst_executed": "5", "thread_inst_executed": "8"}
        found = list(self.lanes.compare([row("a", "5 5"), row("b", "5 6")], [own, own], LOCKSTEP))
        self.assertEqual(found, [("a", {"inst_executed": 0, "thread_inst_executed": -1})])


class Scenarios(unittest.TestCase):
    def setUp(self):
        self.scenarios = support.script("validation/compare_scenarios.py")

    def test_only_rows_timed_by_events_on_both_sides_are_compared(self):
        row = lambda name, clock, time: {
            "scenario": name, "parameter": "n=1", "clock": clock, "median_us": time, "low_us": "1", "high_us": "4"
        }
        measured = [row("a", "device", "2"), row("a", "host", "9"), row("b", "device", "3")]
        simulated = [row("a", "device", "2.5"), row("b", "host", "7")]
        found = list(self.scenarios.pairs(measured, simulated))
        self.assertEqual(found, [("a n=1", 2.5, [1.0, 2.0, 4.0])])

    def test_a_row_inside_the_range_of_hardware_or_within_a_quarter_is_right(self):
        self.assertTrue(self.scenarios.near({"inside": True, "error": 0.0}))
        self.assertTrue(self.scenarios.near({"inside": False, "error": 0.25}))
        self.assertFalse(self.scenarios.near({"inside": False, "error": 0.26}))


if __name__ == "__main__":
    unittest.main()
