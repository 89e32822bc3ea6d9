"""Every Python file of the repository: it compiles, imports nothing that it does not use, and is not too long."""

import ast
import re
import subprocess
import unittest

from tests.support import ROOT
from harness import metrics

LONGEST_FILE, LONGEST_FUNCTION = 600, 80


def sources():
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in map(ROOT.joinpath, listed.splitlines()) if path.exists()]


def unused_imports(tree):
    """Names that are imported and never read. What `__all__` lists is handed on, and the future is no name."""
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                imported[(alias.asname or alias.name).split(".")[0]] = node.lineno
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and [getattr(target, "id", None) for target in node.targets] == ["__all__"]:
            used |= set(ast.literal_eval(node.value))
    return {name: line for name, line in imported.items() if name not in used}


class Sources(unittest.TestCase):
    def test_the_repository_has_python(self):
        self.assertGreater(len(sources()), 15)

    def test_every_file_compiles_and_uses_what_it_imports(self):
        for path in sources():
            with self.subTest(path=str(path.relative_to(ROOT))):
                compile(path.read_text(), str(path), "exec")
                tree = ast.parse(path.read_text())
                self.assertEqual(unused_imports(tree), {})

    def test_an_unused_import_is_found(self):
        tree = ast.parse("import os\nimport sys\nfrom a import b as c\nsys.exit(c)\n")
        self.assertEqual(unused_imports(tree), {"os": 1})

    def test_what_a_package_hands_on_is_used(self):
        tree = ast.parse("from __future__ import annotations\nfrom a import b, c\n__all__ = ['b']\n")
        self.assertEqual(unused_imports(tree), {"c": 2})

    def test_files_and_functions_stay_short(self):
        for path in sources():
            text = path.read_text()
            with self.subTest(path=str(path.relative_to(ROOT))):
                self.assertLessEqual(len(text.splitlines()), LONGEST_FILE)
                for node in ast.walk(ast.parse(text)):
                    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                        self.assertLessEqual(node.end_lineno - node.lineno + 1, LONGEST_FUNCTION, node.name)


class Tables(unittest.TestCase):
    def test_every_table_that_a_configuration_cites_is_there(self):
        known = {path.name for path in (ROOT / "validation").rglob("*.csv")}
        for path in sorted((ROOT / "configs").rglob("*.toml")):
            for name in re.findall(r"(?<![\w*.-])[\w-]+\.csv", path.read_text()):
                with self.subTest(path=str(path.relative_to(ROOT))):
                    self.assertIn(name, known)


COUNTERS = ROOT / "docs" / "reference" / "counters.md"


def ncu_names(page):
    """{counter: names in ncu} of the page that is made from the simulator's own table of counters."""
    found = {}
    for line in page.splitlines():
        name, names = re.match(r"\| `(\w+)` \|", line), re.search(r"\bncu ((?:`[^`]+`(?:, )?)+)", line)
        if name and names:
            found[name.group(1)] = re.findall(r"`([^`]+)`", names.group(1))
    return found


class Metrics(unittest.TestCase):
    def test_names_are_read_from_the_page(self):
        page = "| `cycles` | counter | kernel | cycles | time | ncu `a.max`, `b.max`; DCGM `c` |\n| `other` | gauge |\n"
        self.assertEqual(ncu_names(page), {"cycles": ["a.max", "b.max"]})

    @unittest.skipUnless(COUNTERS.exists(), "the table of counters has no page")
    def test_what_is_measured_has_the_names_of_the_table_of_counters(self):
        table, compared = ncu_names(COUNTERS.read_text()), 0
        for name, metric in {**metrics.TRAFFIC, **metrics.SOURCES, **metrics.ONE_PASS}.items():
            if name in table:
                compared += 1
                self.assertIn(metric, table[name], name)
        self.assertGreater(compared, 10)


if __name__ == "__main__":
    unittest.main()
