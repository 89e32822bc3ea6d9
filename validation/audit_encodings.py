#!/usr/bin/env python3
"""Asks nvdisasm what every bit of an instruction word means, and whether our disassembly says the same.

    audit_encodings.py --architecture 90 [--nvdisasm PROGRAM] [--pairs N] [--show N] [--only OPCODE] [SOURCE...]

Words are those of crates/isa/tests/sass/nvdisasm.tsv and of the SOURCEs, as compare_disassembly.py reads them; of words
with the same spelling and the same kinds of operands one is taken. Each bit of a word is flipped, and N pairs of bits
drawn with a fixed seed (scheduling bits but those of the register cache stay). What comes of a changed word:

    equal     both texts are the same, or both refuse the word
    wrong     both print, and not the same: a field is read wrongly, or dropped ("dropped": we print the unchanged text)
    accepted  nvdisasm refuses the word or calls a field invalid, and we print it ("ignored": as the unchanged text)
    refused   nvdisasm prints, and we know no such encoding; no program with it runs, and none runs wrongly

Exits 1 if anything is wrong. For sm_70 an nvdisasm of CUDA 12.4 is needed (the wheel triton==3.1.0 on PyPI has one).
"""

import argparse
import collections
import random
import re
import subprocess
import sys
import tempfile

import compare_disassembly
import corpus
from harness import project

ROWS = project.ROOT / "crates" / "isa" / "tests" / "sass" / "nvdisasm.tsv"
LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*(?:/\*.*)?$")
REFUSED = re.compile(r"at address 0x([0-9a-f]+)")
INVALID = re.compile(r"INVALID|\?\?\?|\(\*")
# Bits that say what an instruction does: all but stall, yield, counters and waits.
MEANING = [*range(105), *range(122, 126)]
BATCH = 60_000


def theirs(nvdisasm, architecture, words):
    """What nvdisasm prints for each word; None where it refuses it or calls something in it invalid."""
    texts = [None] * len(words)
    for start in range(0, len(words), BATCH):
        left = list(range(start, min(start + BATCH, len(words))))
        while left:
            lines, refused = listing(nvdisasm, architecture, [words[index] for index in left])
            if not refused:
                for place, index in enumerate(left):
                    text = lines.get(place)
                    texts[index] = None if text is None or INVALID.search(text) else text
                break
            left = [index for place, index in enumerate(left) if place not in refused]
    return texts


def listing(nvdisasm, architecture, words):
    """({place: text}, places that are refused) of one call."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(b"".join(word.to_bytes(16, "little") for word in words))
        file.flush()
        name = compare_disassembly.NAMES.get(architecture, f"SM{architecture}")
        command = [nvdisasm, "--binary", name, "-ndf", file.name]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    refused = {int(address, 16) // 16 for address in REFUSED.findall(done.stderr)}
    found = (match for match in map(LINE.match, done.stdout.splitlines()) if match)
    lines = {int(match.group(1), 16) // 16: match.group(2).strip() for match in found}
    if not lines and not refused:
        raise SystemExit(f"nvdisasm says nothing that can be read:\n{done.stderr[:500]}")
    return lines, refused


def ours(disassemble, architecture, words):
    """What the tables say of each word; None where they know none."""
    text = "\n".join(f"{word:032x}" for word in words)
    done = subprocess.run([*disassemble, str(architecture)], input=text, capture_output=True, text=True, check=True)
    return [line.strip() or None for line in done.stdout.splitlines()]


def relative(text):
    """A text without what depends on the address of the instruction: nvdisasm was asked about one place each."""
    return re.sub(r"(`\(\S+\)|-?0x[0-9a-f]+)$", "target", text) if JUMP.match(text) else text


JUMP = re.compile(r"(@!?U?P\w+ )?(BRA|BRX|BRXU|BSSY|CALL|RET|JMP|JMX|JMXU|WARPSYNC|BREAK|PRET|PCNT|BPT|SSY|LEPC)\b")


def kind(text):
    """A text with the same spelling and kinds of operands for all registers and numbers."""
    text = re.sub(r"\b(U?[RP])\d+", r"\1", text)
    text = re.sub(r"-?0x[0-9a-f]+", "n", text)
    return re.sub(r"-?\b\d+(\.\d+)?(e[+-]\d+)?\b", "n", text)


def samples(arguments):
    """One word of each kind, without its scheduling bits."""
    words = []
    for line in ROWS.read_text().splitlines():
        fields = line.split("\t")
        if fields[0] == str(arguments.architecture):
            words.append(int(fields[2], 16))
    with tempfile.TemporaryDirectory() as scratch:
        libraries = corpus.read(arguments.sources, arguments.architecture, scratch)
        for files in libraries.values():
            for file in files:
                for code in corpus.code(file.read_bytes()):
                    words += [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]
    plain = sum(1 << bit for bit in range(105)) | 0x7E0 << 105
    return list(dict.fromkeys(word & plain for word in words))


def changed(words, pairs):
    """(index of the word, flipped bits)."""
    drawn = random.Random(7)
    for index in range(len(words)):
        for bit in MEANING:
            yield index, (bit,)
        for _ in range(pairs):
            yield index, tuple(sorted(drawn.sample(MEANING, 2)))


def verdict(their, our, before):
    """Which of the classes two texts are in."""
    if their is not None and our is not None:
        if relative(their) == relative(our):
            return "equal"
        return "wrong, dropped" if our == before else "wrong"
    if their is None and our is None:
        return "equal"
    if our is None:
        return "refused"
    return "accepted, ignored" if our == before else "accepted"


def audit(arguments):
    """Prints what differs; whether nothing is wrong."""
    nvdisasm = arguments.nvdisasm or project.toolkit_program("nvdisasm") or "nvdisasm"
    build = ["cargo", "run", "--release", "-q", "-p", "lockstep-isa", "--example", "disassemble", "--"]
    disassemble = [arguments.disassembler] if arguments.disassembler else build
    words = samples(arguments)
    texts = theirs(nvdisasm, arguments.architecture, words)
    kinds = {}
    for word, text in zip(words, texts, strict=True):
        if text is not None and (not arguments.only or re.search(arguments.only, text)):
            kinds.setdefault(kind(text), word)
    words = list(kinds.values())
    flips = list(changed(words, arguments.pairs))
    flipped = [words[index] ^ sum(1 << bit for bit in bits) for index, bits in flips]
    before = ours(disassemble, arguments.architecture, words)
    mine = ours(disassemble, arguments.architecture, flipped)
    other = theirs(nvdisasm, arguments.architecture, flipped)
    counts, examples = collections.Counter(), collections.defaultdict(list)
    for (index, bits), word, their, our in zip(flips, flipped, other, mine, strict=True):
        found = verdict(their, our, before[index])
        counts[found] += 1
        if found != "equal":
            opcode = re.sub(r"^@\S+ ", "", their or our).split()[0].split(".")[0]
            line = f"{word:032x} {their or 'refused'} | {our or 'unknown'}"
            examples[found, opcode, f"{word & 0xFFF:03x}", bits].append(line)
    report(arguments, counts, examples)
    print(f"sm_{arguments.architecture}: {len(words)} kinds of instructions, {len(flips)} changed words:", end=" ")
    print(", ".join(f"{number} {name}" for name, number in sorted(counts.items())))
    return not any(name.startswith("wrong") for name in counts)


def report(arguments, counts, examples):
    """Prints examples of each class but `equal`, by opcode and bits."""
    for found in sorted(counts):
        if found == "equal" or (found == "refused" and not arguments.refused):
            continue
        for (name, opcode, operation, bits), lines in sorted(examples.items()):
            if name == found:
                print(f"{found}: {opcode} {operation} bit {','.join(map(str, bits))}: {len(lines)}")
                for line in lines[: arguments.show]:
                    print(f"    {line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", metavar="SOURCE")
    parser.add_argument("--architecture", type=int, required=True)
    parser.add_argument("--nvdisasm")
    parser.add_argument("--pairs", type=int, default=0, help="pairs of bits that are flipped in each word")
    parser.add_argument("--show", type=int, default=1, help="examples of each difference")
    parser.add_argument("--only", help="a regular expression that the text must match")
    parser.add_argument("--refused", action="store_true", help="print also what only nvdisasm knows")
    parser.add_argument("--disassembler", help="the example `disassemble` of lockstep-isa, if it is built already")
    sys.exit(0 if audit(parser.parse_args()) else 1)


if __name__ == "__main__":
    main()
