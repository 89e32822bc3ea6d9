"""Tests of the generator: the same seed gives the same bytes, whatever Python's hashing."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from generator import contents  # noqa: E402


def generate(seed, hashing):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(ROOT / "generate.py"), "--seed", str(seed), "--count", "2", "--out", folder],
                       check=True, env={**os.environ, "PYTHONHASHSEED": hashing})
        return {path.name: path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir())}


class Generator(unittest.TestCase):
    def test_a_seed_names_a_program(self):
        first = generate(5, "1")
        self.assertEqual(first, generate(5, "2"))
        self.assertEqual(sorted(first), ["p5.cu", "p5.txt", "p6.cu", "p6.txt"])
        self.assertNotEqual(first["p5.cu"], first["p6.cu"])

    def test_manifests_name_all_kernels_and_symbols(self):
        files = generate(9, "0")
        source = files["p9.cu"].decode()
        lines = [line.split() for line in files["p9.txt"].decode().splitlines()]
        kernels = [line[0] for line in lines if line[0] != "symbol"]
        self.assertEqual(kernels, [f"k{i}" for i in range(16)])
        for name in kernels:
            self.assertIn(f" {name}(const unsigned char *input", source)
        for line in lines:
            if line[0] == "symbol":
                self.assertIn(f" {line[1]}[", source)

    def test_braces_are_balanced(self):
        source = generate(11, "0")["p11.cu"].decode()
        self.assertEqual(source.count("{"), source.count("}"))


class Contents(unittest.TestCase):
    def test_mix_is_that_of_splitmix64(self):
        # The first output of splitmix64 from state 0.
        self.assertEqual(contents.mix(contents.GOLDEN), 0xE220A8397B1DCDAF)

    def test_bytes_are_those_of_words(self):
        word = contents.word(3, 1, contents.INPUT, 2)
        self.assertEqual([contents.byte(3, 1, contents.INPUT, 16 + i) for i in range(8)], list(word.to_bytes(8, "little")))


if __name__ == "__main__":
    unittest.main()
