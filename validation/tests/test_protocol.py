"""What scripts ask of the simulator. Without one that is built these tests are skipped."""

import pathlib
import tempfile
import unittest

from tests import support
from harness import protocol

LOCKSTEP = support.simulator()
COLD = (
    "# date: 2026-11-15\n"
    "program,size,launch,kernel,grid,block,registers,shared,inst_executed,warps_launched\n"
    'add,default,0,add,"(1, 1, 1)","(32, 1, 1)",16,0,64 64 64 64 64,1 1 2 1 1\n'
)


@unittest.skipUnless(LOCKSTEP, "no simulator is built")
class Protocol(unittest.TestCase):
    def test_errors_come_back_in_the_order_of_the_pairs(self):
        figures = protocol.errors([("a, b", 150, 100), ("c", 95, [90, 100, 120])], LOCKSTEP)
        self.assertEqual([row["name"] for row in figures["rows"]], ["a, b", "c"])
        self.assertEqual([row["error"] for row in figures["rows"]], [0.5, 0.0])
        self.assertEqual([row["repeats"] for row in figures["rows"]], [True, False])
        self.assertEqual(figures["errors"]["mean"], 0.25)

    def test_bad_numbers_end_the_script_with_their_line(self):
        with self.assertRaises(SystemExit) as refused:
            protocol.errors([("a", "many", 1)], LOCKSTEP)
        self.assertIn("line 2: `many` is not a number", str(refused.exception))

    def test_counts_that_repeat_come_from_the_tables(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "cold.csv").write_text(COLD)
            self.assertEqual(protocol.repeating(folder, LOCKSTEP), {("add", "default", 0): {"inst_executed": 64.0}})

    def test_one_kernel_has_one_name(self):
        names = ["_Z9vectorAddPKfS0_Pfi", "vectorAdd(const float *, int)", "void a::vectorAdd<float>(T1)"]
        self.assertEqual(set(protocol.kernel_names(names, LOCKSTEP).values()), {"vectorAdd"})
        self.assertEqual(protocol.kernel_names([], LOCKSTEP), {})


if __name__ == "__main__":
    unittest.main()
