#!/usr/bin/env python3
"""Results of programs on the host, by emulation of a GPU's threads.

    judge.py DIR --out OUT [--only p3:k4] [--fill 255] [--sanitize] [--jobs 1]

The source that a GPU gets is compiled by g++ with `include/host/` in place of CUDA's headers. Inline PTX becomes calls
of an interpreter, module variables and kernels become tables; nothing else changes. A line is printed for each kernel as
the runner prints it. Kernels that the manifest marks `host 0`, and those that reach what the host has no twin of, are
left out; the latter are listed as `skip`.

`--fill` is what shared memory holds at first, and local variables that nothing set hold zeros or a pattern by it: two
runs that differ show a read before any write. `--sanitize` adds the compiler's checks for undefined behaviour.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys

import tools

FLAGS = ["-std=gnu++17", "-O0", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-math-errno", "-DLOCKSTEP_HOST"]
MACHINE = ["-std=gnu++17", "-O2", "-ffp-contract=off", "-fno-math-errno"]
SANITIZE = ["-fsanitize=signed-integer-overflow,shift,integer-divide-by-zero,float-cast-overflow,alignment,bool,return,unreachable"]


class Failed(Exception):
    """A program that the host's compiler refused; the first error says why."""


# -- the source ----------------------------------------------------------------------------------------------------


def skip_text(text, at):
    """Behind the text in quotes that starts here."""
    quote, at = text[at], at + 1
    while text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at + 1


def closing(text, at):
    """The place of the bracket that closes the one here."""
    level = 0
    while True:
        if text[at] in "\"'":
            at = skip_text(text, at)
            continue
        level += (text[at] in "([{") - (text[at] in ")]}")
        if level == 0:
            return at
        at += 1


def parts(text, separator):
    """The parts of a text between separators outside of brackets and quotes."""
    found, start, at = [], 0, 0
    while at < len(text):
        if text[at] in "\"'":
            at = skip_text(text, at)
        elif text[at] in "([{":
            at = closing(text, at) + 1
        elif text[at] == separator:
            found.append(text[start:at])
            at += 1
            start = at
        else:
            at += 1
    return [*found, text[start:]]


def operand(text):
    """The constraint and the expression of an operand."""
    text = text.strip()
    places, at = None, 0
    while at < len(text):
        if text[at] in "\"'":
            at = skip_text(text, at)
        elif text[at] == "(":
            end = closing(text, at)
            places = at, end
            at = end + 1
        else:
            at += 1
    return text[: places[0]], text[places[0] + 1 : places[1]]


def interpreted(statement):
    """What stands in for `asm(...)`, given what is between the brackets."""
    text, outputs, inputs, *_ = [*parts(statement, ":"), "", ""]
    outputs = [operand(part) for part in parts(outputs, ",") if part.strip()]
    inputs = [operand(part) for part in parts(inputs, ",") if part.strip()]
    words = [f"host::word({name})" if "+" in constraint else "0" for constraint, name in outputs]
    words += [f"host::word({name})" for _, name in inputs]
    lines = ["static const host::Code *code_ = host::read(" + text.strip() + ");", "uint64_t values_[] = {" + ", ".join(words or ["0"]) + "};"]
    lines.append("host::run(code_, values_);")
    lines += [f"host::unword({name}, values_[{place}]);" for place, (_, name) in enumerate(outputs)]
    return "({ " + " ".join(lines) + " })"


def without_asm(source):
    """The source with inline PTX interpreted."""
    result, at = [], 0
    pattern = re.compile(r"\basm\b(?:\s*\bvolatile\b)?\s*\(|//[^\n]*|\"")
    while True:
        match = pattern.search(source, at)
        if not match:
            return "".join([*result, source[at:]])
        if match[0] == '"':
            end = skip_text(source, match.start())
            result.append(source[at:end])
            at = end
        elif match[0].startswith("//"):
            result.append(source[at : match.end()])
            at = match.end()
        else:
            end = closing(source, match.end() - 1)
            # Within a macro the statement stands on several lines.
            statement = re.sub(r"\\\n", " ", source[match.end() : end])
            result += [source[at : match.start()], interpreted(statement.replace("\n", " "))]
            at = end + 1


def translated(source, manifest):
    """A program for the host, with the tables of its kernels and variables."""
    source = re.sub(r"extern __shared__ (?:__align__\(\d+\) )?([^;\[]+?)\s*(\w+)\[\];", r"\1 *\2 = (\1 *)host::dynamic_shared;", without_asm(source))
    kernels = re.findall(r"__global__[^;{]*?\b(k\d+)\s*\(const unsigned char", source)
    names = [line.split()[1] for line in manifest.splitlines() if line.startswith("symbol ")]
    names = [name for name in names if re.search(rf"\b{name}\b", source)]
    launches = [f'{{"{name}", host::Caller<{name}>::call}}, ' for name in kernels]
    variables = [f'{{"{name}", (void *)&{name}, sizeof {name}}}, ' for name in names]
    return source + f"""
extern "C" {{ extern unsigned char __start_of_a_block[] __attribute__((weak)), __stop_of_a_block[] __attribute__((weak)); }}
unsigned char *host::shared_start = __start_of_a_block, *host::shared_end = __stop_of_a_block;
const host::Launch host::launches[] = {{{"".join(launches)}{{0, 0}}}};
const host::Variable host::variables[] = {{{"".join(variables)}{{0, 0, 0}}}};
"""


# -- building and running ------------------------------------------------------------------------------------------


def newer(made, *origins):
    return made.exists() and all(made.stat().st_mtime > origin.stat().st_mtime for origin in origins)


def compile_with(words, made):
    part = made.with_suffix(".part" + made.suffix)
    done = subprocess.run(["g++", *map(str, words), "-o", str(part)], capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        raise Failed(errors[0][-300:])
    part.rename(made)


# What all programs share.
SHARED = tools.PROJECT / "target/fuzz/host"


def prepare():
    """Translates the headers and compiles the machine."""
    includes = SHARED / "include"
    includes.mkdir(parents=True, exist_ok=True)
    sources = tools.headers() + [tools.HERE / "judge.py"]
    for header in tools.headers():
        if not newer(includes / header.name, *sources):
            (includes / header.name).write_text(without_asm(header.read_text()))
    host = tools.HERE / "include/host"
    for name in ("ptx", "machine"):
        if not newer(SHARED / f"{name}.o", *host.iterdir(), tools.HERE / "include/manifest.h"):
            compile_with([*MACHINE, "-c", host / f"{name}.cpp"], SHARED / f"{name}.o")


def build(source, out, options=()):
    """The program for the host, built unless it is there."""
    text = f"// {' '.join(options)}\n" + translated(source.read_text(), source.with_suffix(".txt").read_text())
    made, copy = out / source.stem, out / f"{source.stem}.cpp"
    if copy.exists() and copy.read_text() == text and newer(made, *(SHARED / "include").iterdir(), SHARED / "machine.o", SHARED / "ptx.o"):
        return made
    copy.write_text(text)
    compile_with([*FLAGS, *options, "-I", SHARED / "include", "-I", tools.HERE / "include", copy, SHARED / "ptx.o", SHARED / "machine.o"], made)
    return made


def judge(folder, out, only=None, jobs=1, limit=60, fill=0, sanitize=False, dump=False):
    """The lines of all programs of a folder, what could not be compiled, and all that was said."""
    prepare()
    out.mkdir(parents=True, exist_ok=True)
    program, _, kernel = (only or "").partition(":")
    options = [f"-ftrivial-auto-var-init={'pattern' if fill else 'zero'}", *(SANITIZE if sanitize else [])]
    failures = {}

    def one(source):
        try:
            words = [build(source, out, options), source.with_suffix(".txt"), "--fill", str(fill), "--limit", str(limit)]
        except Failed as why:
            failures[source.stem] = str(why)
            return "", ""
        done = subprocess.run([str(word) for word in [*words, *(["--only", kernel] if kernel else []), *(["--dump"] if dump else [])]], capture_output=True, text=True)
        return done.stdout, done.stderr

    sources = [source for source in tools.sources(folder) if not program or source.stem == program]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        answers = list(pool.map(one, sources))
    lines = [line for printed, _ in answers for line in printed.splitlines()]
    said = "".join(errors for _, errors in answers) + "".join(f"{line}\n" for line in lines if " skip " in line)
    return [line for line in lines if " skip " not in line], failures, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--fill", type=int, default=0)
    parser.add_argument("--sanitize", action="store_true")
    options = parser.parse_args()
    lines, failures, said = judge(options.folder, options.out, options.only, options.jobs, options.limit, options.fill, options.sanitize)
    print("".join(line + "\n" for line in lines), end="")
    print(said + "".join(f"{name} host: {why}\n" for name, why in failures.items()), end="", file=sys.stderr)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
