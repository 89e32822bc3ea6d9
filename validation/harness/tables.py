"""Tables of measurements: CSV under lines `# key: value` that say where they come from.

A cell of a repeated measurement holds one value for each repetition, separated by blanks.
"""

import csv
import pathlib


def is_comment(line):
    return line.startswith("#")


def rows(path):
    """The rows of a table as dictionaries, without its head of comments."""
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not is_comment(line)))


def provenance(path):
    """What the head of a table says, by key; what stands in brackets after a key is left out."""
    said = {}
    for line in pathlib.Path(path).read_text().splitlines():
        if not is_comment(line):
            break
        key, found, value = line.lstrip("# ").partition(": ")
        if found:
            said.setdefault(key.split(" (")[0], value.strip())
    return said


def repetitions(cell, kind=float):
    """The values of a cell, one for each repetition."""
    return [kind(value) for value in cell.split()]


def write(path, columns, lines, head=()):
    """Writes a table: lines of its head, its columns, its rows."""
    with open(path, "w", newline="") as file:
        for line in head:
            file.write(f"# {line}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(lines)


def markdown(columns, lines):
    """The same as Markdown."""
    text = ["| " + " | ".join(map(str, cells)) + " |" for cells in [columns, *lines]]
    return "\n".join([text[0], "|" + "---|" * len(columns), *text[1:]])
