#!/usr/bin/env python3
"""A small program made of a large one, in which two ways still differ.

    reduce.py p3.cu k4 functional:O3 functional:G [--agree functional:O0 ...] [--out DIR] [--seconds 1200]
    reduce.py p3.cu k4 --command "SCRIPT"         [--out DIR]

The two ways are those of ways.py, or `compiles:WAY` for a compiler that fails. A candidate is kept only if the same
kind of difference stays: two values that differ, or the same error. It must also pass what the first program passes of:
the ways of --agree give the first way's result, and the simulator's checks find no race and no read of memory that
nobody wrote. So an accident of undefined behaviour does not take the difference's place. With --command a candidate
counts if `SCRIPT FOLDER` exits with 0, where FOLDER holds the program and its manifest.

Steps, again until none helps: other kernels and file-scope text go; the kernel ends early; the grid and the block shrink; statements and
blocks go, or a block's content takes its place; expressions become one of their parts or a constant.

OUT gets `pS.cu` and `pS.txt` after every step forward, so that the work can be stopped at any time.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import compare
import compile as compiling
import tools
import ways

# A statement that orders threads: alone it stays, since without it there may be a race.
ORDERS = re.compile(r"sync|barrier|fence|arrive|wait|commit")
# A thread's own place: without it threads write the same words.
PLACE = re.compile(r"\s*\w+ (thread|lane|warp|block|global|lanes) = ")
CONSTANTS = ("0", "1")


class Spent(Exception):
    """No time is left."""


# -- text ----------------------------------------------------------------------------------------------------------


def depth_of(line):
    """How many braces a line opens beyond those that it closes, texts and comments left out."""
    line = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'|//.*', "", line)
    return line.count("{") - line.count("}")


class Node:
    """A statement (its lines), or a block: lines up to `{`, children, lines from `}` on."""

    def __init__(self, head, children=None, tail=()):
        self.head, self.children, self.tail = list(head), children, list(tail)

    def lines(self):
        inner = [line for child in self.children or () for line in child.lines()]
        return [*self.head, *inner, *self.tail]

    @property
    def text(self):
        return "\n".join(self.lines())


def parse(lines):
    """The nodes of some lines with balanced braces. A block's header is the lines since the last statement."""
    nodes, head, index = [], [], 0
    while index < len(lines):
        line = lines[index]
        head.append(line)
        index += 1
        opened = depth_of(line)
        if opened > 0:
            start, level = index, opened
            while index < len(lines) and level > 0:
                level += depth_of(lines[index])
                index += 1
            tail = lines[index - 1]
            nodes.append(Node(head, parse(lines[start : index - 1]), [tail]))
            head = []
        elif not line.strip() or re.search(r"[;}\\:]\s*$", line) or line.lstrip().startswith(("#", "//")):
            nodes.append(Node(head))
            head = []
    if head:
        nodes.append(Node(head))
    return nodes


def lines_of(nodes):
    return [line for node in nodes for line in node.lines()]


def spots(text):
    """Places of subexpressions, the longest first: (start, end, the texts that may take its place)."""
    found = []
    stack = []
    for index, letter in enumerate(text):
        if letter == "(":
            stack.append(index)
        elif letter == ")" and stack:
            start = stack.pop()
            name = re.search(r"[\w:]+(<[\w, ]*>)?$", text[:start])
            inner = text[start + 1 : index]
            parts = [part.strip() for part in split(inner, ",")] if name else operands(inner)
            begin = name.start() if name else start
            if name and name[0] in ("if", "while", "for", "switch", "sizeof"):
                continue
            found.append((begin, index + 1, [part if not name else f"({part})" for part in parts if part] + list(CONSTANTS)))
    return sorted(found, key=lambda spot: spot[0] - spot[1])


def split(text, separator):
    """The parts of a text between separators outside of brackets."""
    parts, level, start = [], 0, 0
    for index, letter in enumerate(text):
        level += (letter in "([{") - (letter in ")]}")
        if letter == separator and level == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def operands(text):
    """The operands of the outermost operators of an expression, which generated programs put between spaces."""
    parts, level, start = [], 0, 0
    index = 0
    while index < len(text):
        level += (text[index] in "([{") - (text[index] in ")]}")
        match = level == 0 and re.match(r" (\+|-|\*|/|%|&|\||\^|<<|>>|&&|\|\||==|!=|<=|>=|<|>|\?|:) ", text[index:])
        if match:
            parts.append(text[start:index].strip())
            index += len(match[0])
            start = index
        else:
            index += 1
    return [*parts, text[start:].strip()] if parts else []


# -- judging a candidate -------------------------------------------------------------------------------------------


class Oracle:
    """Whether two ways still differ in the kind of the first difference."""

    def __init__(self, name, kernel, options):
        self.name, self.kernel, self.options = name, kernel, options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="reduce"))
        self.tried, self.kind, self.guards = {}, None, []
        self.runs = 0

    def result(self, folder, way):
        """The result of the kernel this way: a digest, an error, or that it did not compile."""
        mode, _, compiled = way.partition(":")
        if mode == "compiles":
            _, failures = compiling.compile_all(folder, compiled, self.options.arch, folder / f"compiles-{compiled}")
            return "".join(f"!{why.split(':')[1].strip()}" for why in failures.values()) or "compiles"
        lines, failures, said = ways.results(folder, way, folder, self.options.gpu, self.options.arch, only=f"{self.name}:{self.kernel}", limit=self.options.limit)
        if failures:
            return None
        if mode == "checked":
            return "faulty" if "lockstep: check " in said else "clean"
        for line in lines:
            words = line.split()
            if words[1] == self.kernel:
                return "e" + words[3] if words[2] == "error" else words[2]
        return None

    def kind_of(self, folder):
        """What differs: None if nothing does or a candidate is no program."""
        if self.options.command:
            done = subprocess.run(f"{self.options.command} {folder}", shell=True, capture_output=True)
            return "command" if done.returncode == 0 else None
        first = self.result(folder, self.options.ways[0])
        if first is None:
            return None
        if len(self.options.ways) == 1:
            return first if first.startswith(("!", "e")) else None
        second = self.result(folder, self.options.ways[1])
        if second is None or first == second:
            return None
        for way in self.guards:
            if self.result(folder, way) != ("clean" if way.startswith("checked") else first):
                return None
        return tuple(result if result.startswith("!") or compare.is_error(result) else "value" for result in (first, second))

    def start(self, source, manifest):
        """The kind of difference to keep, and the guards that the first program passes."""
        self.kind = self.kind_of(self.write(source, manifest))
        if self.kind is None:
            tools.stop("the ways do not differ")
        if not self.options.command and len(self.options.ways) == 2:
            folder = self.write(source, manifest)
            first = self.result(folder, self.options.ways[0])
            self.guards = [way for way in self.options.agree if self.result(folder, way) == first]
            compiled = [way.partition(":")[2] for way in self.options.ways if ":" in way]
            if "host" not in self.options.ways and self.result(folder, "host") == first:
                self.guards.append("host")
            checked = f"checked:{compiled[0]}" if compiled else None
            if checked and self.result(folder, checked) == "clean":
                self.guards.append(checked)
            print(f"{self.name} {self.kernel}: {self.kind}, guards {' '.join(self.guards) or 'none'}", flush=True)

    def is_guarded(self):
        """Whether a race that a candidate gets would be seen."""
        return any(way == "host" or way.startswith("checked") for way in self.guards)

    def write(self, source, manifest):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        (self.folder / f"{self.name}.cu").write_text(source)
        (self.folder / f"{self.name}.txt").write_text(manifest)
        return self.folder

    def holds(self, source, manifest):
        key = (source, manifest)
        if key not in self.tried:
            if time.monotonic() > self.options.end:
                raise Spent
            self.runs += 1
            self.tried[key] = self.kind_of(self.write(source, manifest)) == self.kind
        return self.tried[key]


# -- steps ---------------------------------------------------------------------------------------------------------


class Reduction:
    """The smallest program so far and the steps that make it smaller."""

    def __init__(self, oracle, source, manifest, out):
        self.oracle, self.source, self.manifest, self.out = oracle, source, manifest, out

    def accept(self, source=None, manifest=None):
        """Takes a candidate if the difference stays."""
        source, manifest = source or self.source, manifest or self.manifest
        if (source, manifest) == (self.source, self.manifest) or not self.oracle.holds(source, manifest):
            return False
        self.source, self.manifest = source, manifest
        self.save()
        return True

    def save(self):
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / f"{self.oracle.name}.cu").write_text(self.source)
        (self.out / f"{self.oracle.name}.txt").write_text(self.manifest)

    def run(self):
        while True:
            before = self.source, self.manifest
            self.top()
            self.prefix()
            self.launch()
            self.statements()
            self.expressions()
            if (self.source, self.manifest) == before:
                return

    def top(self):
        """Drops other kernels, then all file-scope text that the kernel does without."""
        kernel = self.oracle.kernel
        nodes = parse(self.source.splitlines())

        def other(node):
            return re.search(r"__global__", node.text) and not re.search(rf"\b{kernel}\s*\(", node.text.split("{")[0])

        mine = [node for node in nodes if not other(node)]
        manifest = "".join(line + "\n" for line in self.manifest.splitlines() if line.startswith("symbol") or line.split()[0] == kernel)
        self.accept(joined(mine), manifest)
        nodes = parse(self.source.splitlines())
        # What nothing names goes without a trial of its own.
        while True:
            used = [node for node in nodes if is_needed(node, nodes, kernel)]
            if len(used) == len(nodes):
                break
            nodes = used
        self.accept(joined(nodes))
        nodes = parse(self.source.splitlines())
        self.drop(nodes, lambda kept: self.accept(joined(kept)))

    def prefix(self):
        """Ends the kernel early: halves what follows, as long as the difference is there before it."""
        kernel = self.oracle.kernel
        tree = parse(self.source.splitlines())
        body = next((node for node in tree if node.children and re.search(rf"__global__.*\b{kernel}\s*\(", node.text.split("{")[0], re.S)), None)
        if body is None:
            return
        nodes = body.children
        last = [node for node in nodes if re.match(r"\s*output\[", node.text)]
        low, high = 0, len(nodes)
        while high - low > 1:
            middle = (low + high) // 2
            body.children = nodes[:middle] + [node for node in last if node not in nodes[:middle]]
            if self.accept(joined(tree)):
                high = middle
            else:
                low = middle

    def launch(self):
        """Shrinks the grid, then the block, to whole warps."""
        for field in ("grid", "block"):
            for axis in range(3):
                for size in (1, 2) if field == "grid" else (32, 64, 96, 128):
                    words = self.manifest_line().split()
                    place = words.index(field) + 1 + axis
                    alone = field == "grid" or axis == 0 and words[place + 1 : place + 3] == ["1", "1"]
                    if not alone or int(words[place]) <= size:
                        continue
                    words[place] = str(size)
                    if self.accept(manifest=self.with_line(" ".join(words))):
                        break

    def manifest_line(self):
        return next(line for line in self.manifest.splitlines() if line.split()[0] == self.oracle.kernel)

    def with_line(self, line):
        old = self.manifest_line()
        return self.manifest.replace(old, line)

    def drop(self, nodes, accept):
        """Removes ever smaller runs of nodes, the last ones first."""
        size = max(1, len(nodes) // 2)
        while nodes:
            end = len(nodes)
            while end > 0:
                start = max(0, end - size)
                removed, kept = nodes[start:end], nodes[:start] + nodes[end:]
                if may_go(removed, kept, self.oracle.is_guarded()) and accept(kept):
                    nodes = kept
                end = start
            if size == 1:
                break
            size = max(1, size // 2)
        return nodes

    def statements(self):
        """Drops statements and blocks in every block, from the outermost in."""
        level = 0
        while True:
            paths = list(blocks_at(parse(self.source.splitlines()), level))
            if not paths:
                return
            for path in reversed(paths):
                tree = parse(self.source.splitlines())
                block = follow(tree, path)
                if block is None or block.children is None:
                    continue

                def accept(kept, tree=tree, block=block):
                    old, block.children = block.children, kept
                    if self.accept(joined(tree)):
                        return True
                    block.children = old
                    return False

                self.drop(list(block.children), accept)
                self.unwrap(path)
            level += 1

    def unwrap(self, path):
        """Puts the content of a block in its place."""
        tree = parse(self.source.splitlines())
        block = follow(tree, path)
        if not path[1:] or block is None or block.children is None:
            return
        siblings = follow(tree, path[:-1]).children
        for replacement in (block.children, [Node(["{"], block.children, ["}"])]):
            siblings[path[-1] : path[-1] + 1] = replacement
            if self.accept(joined(tree)):
                return
            siblings[path[-1] : path[-1] + len(replacement)] = [block]

    def expressions(self):
        """Puts parts or constants in the place of expressions, line by line from the end."""
        number = len(self.source.splitlines())
        while number > 0:
            number -= 1
            changed = True
            while changed:
                changed = False
                lines = self.source.splitlines()
                line = lines[number]
                if line.startswith(("#", "extern", "__")) or ORDERS.search(line) or PLACE.match(line):
                    break
                for candidate in simpler(line):
                    if self.accept("\n".join([*lines[:number], candidate, *lines[number + 1 :]]) + "\n"):
                        changed = True
                        break


def simpler(line):
    """Lines that say less."""
    declared = re.match(r"(\s*(?:const )?\w+ \w+ = )(.*);$", line)
    if declared and declared[2] not in CONSTANTS:
        yield from (f"{declared[1]}{constant};" for constant in CONSTANTS)
    for start, end, texts in spots(line):
        for text in sorted(texts, key=len):
            candidate = line[:start] + text + line[end:]
            if len(candidate) < len(line):
                yield candidate


def joined(nodes):
    return "\n".join(lines_of(nodes)) + "\n"


def is_needed(node, nodes, kernel):
    """Whether a node of file scope is named elsewhere, or is more than a declaration."""
    text = node.text.strip()
    if not text or text.startswith("#") or re.search(rf"\b{kernel}\s*\(", text):
        return bool(text)
    names = re.findall(r"\b(\w+)\s*(?:\[[^\]]*\])*\s*(?:=|;|\()", text.split("{")[0] + ("(" if "{" in text else ""))
    names += re.findall(r"\b(?:struct|class|union|enum) (\w+)", text)
    others = "\n".join(other.text for other in nodes if other is not node)
    return not names or any(re.search(rf"\b{name}\b", others) for name in names)


def may_go(removed, kept, is_guarded=False):
    """Whether nodes can be removed: barriers stay unless a guard would see the race, and so does what others name."""
    if not is_guarded and any(node.children is None and ORDERS.search(node.text) for node in removed):
        return False
    if not any(node.text.strip() for node in removed):
        return False
    names = [match[1] for node in removed for match in [re.match(r"\s*(?:__shared__ |const |volatile |unsigned )*[\w:<>]+[ *&]+(\w+)(?:\[.*)? ?(?:=|;)", node.head[0])] if match]
    rest = "\n".join(node.text for node in kept)
    return not any(re.search(rf"\b{name}\b", rest) for name in names)


def blocks_at(nodes, level, path=()):
    """Paths of the blocks that are so deep."""
    for index, node in enumerate(nodes):
        if node.children is not None:
            if level == 0:
                yield (*path, index)
            else:
                yield from blocks_at(node.children, level - 1, (*path, index))


def follow(nodes, path):
    node = None
    for index in path:
        if nodes is None or index >= len(nodes):
            return None
        node = nodes[index]
        nodes = node.children
    return node


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("kernel")
    parser.add_argument("ways", nargs="*")
    parser.add_argument("--agree", action="append", default=[], type=ways.is_way)
    parser.add_argument("--command")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("reduced"))
    parser.add_argument("--gpu")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--limit", type=int, default=20, help="seconds for a kernel")
    parser.add_argument("--seconds", type=float, default=1200)
    options = parser.parse_args()
    if not options.command and not 1 <= len(options.ways) <= 2:
        tools.stop("two ways to compare, one way that fails, or --command")
    options.end = time.monotonic() + options.seconds
    oracle = Oracle(options.source.stem, options.kernel, options)
    reduction = Reduction(oracle, options.source.read_text(), options.source.with_suffix(".txt").read_text(), options.out)
    lines = len(reduction.source.splitlines())
    try:
        oracle.start(reduction.source, reduction.manifest)
        reduction.run()
    except Spent:
        print("no time is left; the program may become smaller still")
    finally:
        shutil.rmtree(oracle.folder, ignore_errors=True)
    reduction.save()
    print(f"{lines} lines became {len(reduction.source.splitlines())} in {oracle.runs} trials: {options.out / options.source.name}")


if __name__ == "__main__":
    main()
