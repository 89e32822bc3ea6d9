"""The scripts of the studies: what they compute from runs."""

import contextlib
import io
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from tests import support
from harness import simulator

LOCKSTEP = support.simulator()


def quietly(function, *arguments):
    """What a function prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        function(*arguments)
    return said.getvalue()


class ClockSweep(unittest.TestCase):
    def test_claims_follow_from_the_times(self):
        sweep = support.script("studies/clock-sweep/sweep.py")
        memory = {877: 104.0, 1600: 100.0}
        held = sweep.claims({500: 250.0, 1312: 100.0, 1800: 77.0}, memory)
        self.assertEqual([holds for _, holds, _ in held], [True, True, True])
        # Faster than the clock is not possible.
        held = sweep.claims({500: 263.0, 1312: 100.0, 1800: 90.0}, {877: 106.0, 1600: 100.0})
        self.assertEqual([holds for _, holds, _ in held], [False, False, False])


class Memory(unittest.TestCase):
    def test_a_back_end_is_one_row(self):
        compare = support.script("studies/dram-back-ends/compare.py")
        counts = {"cycles": "100", "dram_bytes_read": "64", "dram_bytes_written": ""}
        hits = [{"component": "gpu0/dram/0", "statistic": name, "value": value} for name, value in [("row_hits", "3"), ("row_misses", "1")]]
        run = simulator.Run(kernels=[counts, counts], statistics=hits)
        self.assertEqual(compare.row("timing", run), ["timing", 200, 128, 0, "75"])


class V100(unittest.TestCase):
    def test_kernels_are_ranked_by_their_time(self):
        correlate = support.script("studies/v100-correlation/correlate.py")
        rows = [{"kernel": name, "cycles": cycles, "fp32": "50", "fp64": ""} for name, cycles in [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")]]
        self.assertEqual(
            [(kernel, share, mix) for kernel, share, mix in correlate.longest_kernels(rows, 2)],
            [("a", 0.4, {"fp32": 50.0}), ("c", 0.4, {"fp32": 50.0})],
        )


class Ranking(unittest.TestCase):
    def setUp(self):
        self.rank = support.script("studies/ranking/rank.py")

    def variant(self, name, repetitions, simulated):
        middle = sorted(repetitions)[len(repetitions) // 2]
        return self.rank.Variant("question", name, middle, min(repetitions), max(repetitions), simulated)

    def test_pairs_within_three_percent_or_with_overlap_do_not_count(self):
        one = self.variant("one", [100, 101, 102], 100)
        self.assertFalse(self.rank.told_apart(one, self.variant("near", [103, 103, 104], 100)))
        self.assertFalse(self.rank.told_apart(one, self.variant("overlaps", [101, 110, 120], 100)))
        self.assertTrue(self.rank.told_apart(one, self.variant("far", [105, 110, 120], 100)))

    def test_the_order_of_simulation_is_right_or_not(self):
        group = [self.variant("a", [100], 50), self.variant("b", [200], 40), self.variant("c", [300], 60)]
        self.assertEqual([same for *_, same in self.rank.ranked(group)], [False, True, True])

    @unittest.skipUnless(LOCKSTEP, "no simulator is built")
    def test_launches_must_be_those_of_hardware(self):
        rows = [{"question": "q", "variant": "a", "cycles": "10 11 12"}]
        self.assertEqual(self.rank.variants(rows, [20.0], LOCKSTEP)[0].median, 11.0)
        with self.assertRaises(SystemExit):
            self.rank.variants(rows, [20.0, 21.0], LOCKSTEP)


class Groups(unittest.TestCase):
    def test_times_and_digests_are_told(self):
        measure = support.script("studies/sm-groups/measure.py")
        summary = {"host": {"seconds": 2.0, "simulating_seconds": 1.0}, "totals": {"cycles": 7}, "digest": "ab"}
        rows = [measure.row(groups, 1, summary) for groups in [1, 2]]
        self.assertEqual(rows[0], [1, 1, 2.0, 1.0, 7, "ab"])
        self.assertEqual(list(measure.said(rows))[1:], ["2 groups: mean 2.00 s, least 2.00 s, most 2.00 s", "1 digest(s)"])


class Speedup(unittest.TestCase):
    def setUp(self):
        self.measure = support.script("studies/parallel-speedup/measure.py")
        self.tabulate = support.script("studies/parallel-speedup/tabulate.py")

    def test_a_plan_is_expanded_line_by_line(self):
        expand = lambda line: self.measure.expand(line, [1, 2], ["static", "dynamic"])
        runs = expand("scale hotspot 704 4")
        self.assertEqual([(count, schedule) for _, count, schedule, *_ in runs], [(1, "auto"), (1, "auto"), (2, "static"), (2, "dynamic")])
        self.assertEqual(expand("many 16 mst 1"), [("many", 16, "auto", ["mst", "1"], "")])
        self.assertEqual(expand("on 0-1 one 2 dynamic mst 1"), [("one", 2, "dynamic", ["mst", "1"], "0-1")])
        with self.assertRaises(SystemExit):
            expand("two mst")

    def test_all_programs_are_scaled_and_run_in_copies(self):
        plan = list(self.measure.plan_of("# seed program\nnw  needleman_wunsch 1792\n", [1, 16]))
        self.assertEqual(plan, ["scale needleman_wunsch 1792", "many 16 needleman_wunsch 1792"])

    def test_what_is_noted_is_what_is_tabulated(self):
        summary = {"host": {"work": {"epochs": 3}, "seconds": 2.0, "simulating_seconds": 1.5}, "configuration": "long"}
        summary |= {"totals": {"inst_executed": 9}, "digest": "ab"}
        run = simulator.Run(kernels=[{"grid": "4x2x1"}, {"grid": "1x1x1"}], summary=summary)
        line = self.measure.note("one 16 dynamic mst 1 2", run)
        self.assertNotIn("long", line)
        row = self.tabulate.parse(line)
        self.assertEqual((row["threads"], row["program"], row["launches"], row["mean_blocks"], row["most_blocks"]), (16, "mst 1 2", 2, 4.5, 8))
        with self.assertRaises(SystemExit):
            self.tabulate.parse(self.measure.note("one 16 dynamic mst 1 2", None))

    def test_the_figures_of_the_readme_follow_from_the_tables(self):
        data = support.ROOT / "studies/parallel-speedup/data"
        for name, all_programs, full, share in [
            ("speedup-19-programs", 9.02, 9.91, 0.83),
            ("speedup-19-programs-before-0014", 8.49, 9.36, 0.71),
            ("speedup-15-programs-after-0014", 9.81, 10.74, 0.73),
        ]:
            runs = self.tabulate.Runs(self.tabulate.read(data / f"{name}.csv"))
            filled = [program for program in runs.one if runs.is_full(program)]
            self.assertAlmostEqual(runs.means("dynamic", runs.one)[16], all_programs, 2)
            self.assertAlmostEqual(runs.means("dynamic", filled)[16], full, 2)
            shares = [found for place, program, count, _, _, found in runs.throughput() if count == 16 and runs.is_full(program) and found]
            self.assertAlmostEqual(self.tabulate.mean(shares), share, 2)
            self.assertEqual(runs.several_digests(), [])

    def test_a_plot_has_a_line_for_each_series(self):
        plot = self.tabulate.svg([1, 2], {"ideal": {1: 1, 2: 2}, "ours": {1: 1, 2: 1.5, 24: 9}})
        self.assertEqual(plot.count("<polyline"), 2)
        self.assertTrue(plot.startswith("<svg ") and plot.endswith("</svg>\n"))


class UnifiedMemory(unittest.TestCase):
    def setUp(self):
        self.study = support.script("studies/unified-memory/study.py")

    def times(self, name, values, faults=(9, 8, 7, 6)):
        cells = zip(self.study.PREFETCHERS, values, faults)
        return [{"benchmark": name, "prefetcher": p, "kernels_us": v, "far_faults": f} for p, v, f in cells]

    def test_time_may_not_rise_from_prefetcher_to_prefetcher(self):
        said = quietly(self.study.say_order, ["srad"], self.times("srad", [4, 3, 2, 1]))
        self.assertIn("srad: 4.0 us > 3.0 > 2.0 > 1.0: falls at each step", said)
        with self.assertRaises(SystemExit):
            quietly(self.study.say_order, ["srad"], self.times("srad", [4, 3, 3.5, 1]))

    def test_only_programs_of_two_blocks_may_tie(self):
        with self.assertRaises(SystemExit):
            quietly(self.study.say_order, ["srad"], self.times("srad", [4, 3, 1, 1], (9, 8, 6, 6)))
        said = quietly(self.study.say_order, ["bfs"], self.times("bfs", [4, 3, 1, 1], (9, 8, 6, 6)))
        self.assertIn("ties at sequential-local and tree-uvmsmart", said)

    def test_short_touches_are_compared_with_probes_that_did_the_same(self):
        short = {name: [100.0, 110.0, 120.0] for name in self.study.MACHINES}
        self.assertEqual(list(self.study.comparable("first_touch_read_x", short)), self.study.READS_ALIKE)
        self.assertEqual(list(self.study.comparable("first_touch_write_x", short)), self.study.WRITES_ALIKE)
        long = short | {self.study.MACHINES[0]: [20000.0, 21000.0, 22000.0]}
        self.assertEqual(self.study.comparable("first_touch_read_x", long), long)

    def test_every_machine_has_measured_touches(self):
        machines = {machine for found in self.study.measured_touches().values() for machine in found}
        self.assertEqual(machines, set(self.study.MACHINES))

    @unittest.skipUnless(LOCKSTEP, "no simulator is built")
    def test_agreement_is_told_in_the_protocols_figures(self):
        rows = [{"benchmark": "a", "size": "s", "kernels_us": str(ours), "h200_us": theirs} for ours, theirs in [(50, 100.0), (400, 200.0)]]
        said = self.study.agreement(rows, LOCKSTEP)
        self.assertEqual(said, "r 1.000, of logarithms 1.000, mean error 75 %, mean factor 2.00")


class CounterParity(unittest.TestCase):
    def setUp(self):
        self.tabulate = support.script("studies/counter-parity/tabulate.py")

    def test_launches_of_contexts_are_what_the_program_makes(self):
        self.assertEqual(self.tabulate.contexts_expected(2, 8), [("first", 8, 8 * 33 * 4), ("second", 8, 8 * 66 * 4)])

    def test_warps_of_a_launch_are_rounded_up_by_block(self):
        self.assertEqual(self.tabulate.warps_of({"grid": "3x2x1", "block": "33x1x1"}), 12)

    def test_a_slowdown_has_an_interval(self):
        slower, half = self.tabulate.slowdown([1.0, 1.0, 1.0, 1.0, 1.0], [1.1, 1.1, 1.1, 1.1, 1.1])
        self.assertAlmostEqual(slower, 10.0)
        self.assertAlmostEqual(half, 0.0)

    @unittest.skipUnless(LOCKSTEP, "no simulator is built")
    def test_ncu_and_our_counts_of_the_recorded_run_agree(self):
        raw = support.ROOT / "validation/hardware/h200/counters/raw"
        with mock.patch.dict(os.environ, {"LOCKSTEP": LOCKSTEP}):
            theirs, launches = self.tabulate.read_ncu(raw / "ncu-bfs-1.csv")
            ours, counted, _ = self.tabulate.read_totals(raw / "exact-bfs-1")
        self.assertEqual(launches, {kernel: counted[kernel] for kernel in launches})
        for kernel in ["expand", "advance"]:
            self.assertEqual(theirs[kernel]["inst_executed"], ours[kernel]["inst_executed"])

    def test_a_step_is_written_down_with_its_code_and_stopped_in_time(self):
        measure = support.script("studies/counter-parity/measure.py")
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ):
            bench = measure.Bench(folder, support.command(pathlib.Path(folder) / "lockstep", "#!/bin/sh\nexit 7\n"))
            self.assertEqual(bench.sample("one", measure.EXACT, ["program"]), 7)
            self.assertEqual(bench.step("two", 0.1, ["sleep", "9"]), measure.STOPPED)
            steps = (pathlib.Path(folder) / "steps.csv").read_text().splitlines()
        self.assertEqual([line.split(",")[:2] for line in steps], [["one", "7"], ["two", "124"]])


class Json(unittest.TestCase):
    def test_the_recorded_summaries_are_readable(self):
        for path in (support.ROOT / "validation/hardware/h200/counters/raw").glob("*/summary.json"):
            self.assertIn("totals", json.loads(path.read_text()), path)


if __name__ == "__main__":
    unittest.main()
