"""The rules of the validation protocol, asked of `lockstep figures`: there is no second copy of them here."""

import csv
import io
import json
import subprocess

from . import project


def ask(question, text="", lockstep=None):
    """What `lockstep figures QUESTION` answers to `text`."""
    line = [project.simulator(lockstep), "figures", *question]
    done = subprocess.run(line, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(line)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def errors(pairs, lockstep=None):
    """The figures of `(name, simulated, hardware)`, hardware being one value or one a repetition.

    A dictionary: `rows` in the order of the pairs (`hardware`, `least`, `most`, `repeats`, `inside`, `error`),
    `errors` (`count`, `mean`, `median`, `ninetieth`, `maximum`, `time_weighted`), `log_error`, `log_r_squared`.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "simulated", "hardware"])
    for name, simulated, hardware in pairs:
        values = hardware if isinstance(hardware, (list, tuple)) else [hardware]
        writer.writerow([name, simulated, " ".join(map(str, values))])
    return json.loads(ask(["errors"], text.getvalue(), lockstep))


def repeating(hardware, lockstep=None):
    """{(program, size, launch): {counter: value}} of the counts that repeat in the tables of a folder."""
    found = {}
    for row in csv.DictReader(io.StringIO(ask(["repeating", str(hardware)], "", lockstep))):
        key = (row["program"], row["size"], int(row["launch"]))
        found.setdefault(key, {})[row["counter"]] = float(row["value"])
    return found


def kernel_names(names, lockstep=None):
    """{name: plain name} of kernels, mangled or as a profiler prints them."""
    names = sorted(set(names))
    if not names:
        return {}
    plain = ask(["kernel-names"], "".join(f"{name}\n" for name in names), lockstep).splitlines()
    return dict(zip(names, plain, strict=True))
