"""The harness: tables, runs, programs, options."""

import pathlib
import tempfile
import unittest
from unittest import mock

from tests.support import ROOT, command
from harness import claims, machine, project, simulator, tables, words, workloads


class Tables(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name) / "table.csv"

    def tearDown(self):
        self.folder.cleanup()

    def test_a_table_is_read_as_it_was_written(self):
        tables.write(self.path, ["kernel", "cycles"], [["add(int, int)", "10 12"]], ["date: 2026-11-15", "card (a,b): x: y"])
        self.assertEqual(tables.rows(self.path), [{"kernel": "add(int, int)", "cycles": "10 12"}])
        self.assertEqual(tables.provenance(self.path), {"date": "2026-11-15", "card": "x: y"})
        self.assertEqual(tables.repetitions("10 12"), [10.0, 12.0])

    def test_every_hardware_table_of_launches_says_where_it_comes_from(self):
        for name in ["cold", "warm", "traffic", "sources", "stalls", "launch_floors"]:
            said = tables.provenance(project.HARDWARE / "h200" / f"{name}.csv")
            self.assertLessEqual({"command", "date", "card"}, said.keys(), name)

    def test_markdown_has_a_line_under_its_head(self):
        self.assertEqual(tables.markdown(["a", "b"], [[1, 2]]), "| a | b |\n|---|---|\n| 1 | 2 |")


FAKE = """#!/bin/sh
out=
while [ "$1" != -- ]; do [ "$1" = --out ] && out=$2; shift; done
shift
[ "$1" = fails ] && { echo no such kernel >&2; exit 3; }
mkdir -p "$out"
printf 'kernel,cycles,duration_ns\\nadd,10,5.5\\nadd,,4.5\\n' > "$out/kernels.csv"
printf 'component,statistic,value\\ngpu0/gmmu,hits,3\\ngpu0/tlb/0,hits,4\\ngpu0/tlb/1,name,x\\n' > "$out/stats.csv"
echo '{"digest": "ab"}' > "$out/summary.json"
echo "$@"
"""


class Runs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.fake = command(pathlib.Path(self.folder.name) / "lockstep", FAKE)

    def tearDown(self):
        self.folder.cleanup()

    def test_a_run_is_read_from_its_folder(self):
        run = simulator.run(self.fake, ["program", "7"], "h200", ["l2.clock=1 GHz"], ["--quiet"])
        self.assertEqual(run.output, "program 7\n")
        self.assertEqual((run.total("cycles"), run.nanoseconds()), (10, 10.0))
        self.assertEqual((run.statistic("hits"), run.statistic("hits", "tlb")), (7, 4))
        self.assertEqual(run.summary, {"digest": "ab"})

    def test_a_run_that_fails_ends_with_its_command_and_words(self):
        with self.assertRaises(simulator.Failed) as failed:
            simulator.run(self.fake, ["fails"], "h200")
        self.assertIn("no such kernel", str(failed.exception))
        self.assertIn("ended with 3", str(failed.exception))

    def test_settings_and_options_stand_before_the_program(self):
        line = simulator.command("lockstep", ["p", "--gpu"], "v100", ["a=b"], ["--quiet"], "out")
        self.assertEqual(line, "lockstep run --gpu v100 --set a=b --quiet --out out --overwrite -- p --gpu".split())


class Programs(unittest.TestCase):
    def test_every_workload_has_a_source_and_a_small_size(self):
        programs = workloads.load()
        self.assertGreater(len(programs), 70)
        for program in programs:
            self.assertTrue((ROOT / "workloads" / program.source).exists(), program.name)
            self.assertIsNotNone(program.arguments("small"), program.name)
            self.assertEqual(program.arguments("default"), ())

    def test_a_program_is_built_for_what_it_needs(self):
        self.assertEqual(workloads.target("sm_75", "sm_90a"), "sm_90a")
        self.assertEqual(workloads.target("sm_90", "sm_75"), "sm_90")

    def test_a_library_has_the_options_of_the_executable_and_more(self):
        program = next(one for one in workloads.load() if one.links)
        folder = pathlib.Path("bin")
        plain = workloads.build_command("nvcc", program, "sm_90", folder, driver_folder="stubs")
        library = workloads.build_command("nvcc", program, "sm_90", folder, True, "main.h")
        self.assertEqual(plain[:5], library[:5])
        self.assertEqual(plain[-2:], ["-Lstubs", f"-l{program.links[0]}"])
        self.assertIn("-Dmain=workload_main", library)

    def test_a_verdict_is_the_last_and_of_the_program(self):
        self.assertEqual(workloads.verdict("add", "x\nFAIL add 1\nPASS add all\n"), ("PASS add all", True))
        self.assertEqual(workloads.verdict("add", "PASS adder all\n"), ("PASS adder all", False))
        self.assertEqual(workloads.verdict("add", "nothing\n"), ("", False))


class Words(unittest.TestCase):
    def test_options_are_taken_from_between_the_words(self):
        self.assertEqual(words.take(["l", "--gpu", "a100", "p"], {"--gpu": "v100"}), (["l", "p"], {"--gpu": "a100"}))
        self.assertEqual(words.take(["l", "p"], {"--gpu": "v100"}), (["l", "p"], {"--gpu": "v100"}))

    def test_an_option_without_a_value_stays_a_word(self):
        self.assertEqual(words.take(["l", "--gpu"], {"--gpu": "v100"}), (["l", "--gpu"], {"--gpu": "v100"}))


class Rest(unittest.TestCase):
    def test_a_tool_that_is_missing_is_named(self):
        with self.assertRaises(project.NotFound) as missing:
            project.simulator("/nowhere/lockstep")
        self.assertIn("cargo build", str(missing.exception))

    def test_a_command_that_is_missing_says_nothing(self):
        self.assertEqual(machine.said(["/nowhere/nvidia-smi"]), "")

    def test_nothing_is_measured_without_a_gpu(self):
        with mock.patch.object(machine, "said", lambda command: ""), self.assertRaises(SystemExit) as ended:
            machine.card()
        self.assertIn("nvidia-smi", str(ended.exception))

    def test_claims_that_fail_make_the_exit_code(self):
        said = claims.Claims()
        said.claim(True, "one")
        with self.assertRaises(SystemExit) as ended:
            said.end()
        self.assertEqual(ended.exception.code, 0)
        said.claim(False, "two")
        with self.assertRaises(SystemExit) as ended:
            said.end()
        self.assertEqual((ended.exception.code, said.failures), (1, ["two"]))


if __name__ == "__main__":
    unittest.main()
