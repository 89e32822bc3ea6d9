"""What the scripts of clients share: numbered checks in the order of the file, one line each, and a count at the end.

    check = Checks("cupy")

    @check
    def vector_add(): ...                 # raises where the result is wrong

    @check.lacks("needs cuBLAS, ...")     # not run unless named; listed with its reason
    def matrix_product(): ...

    check.run()

Lines that `cargo xtask validate --clients` reads:

    client cupy 14.2.0
    1 vector_add: ok
    2 matrix_product: lacks needs cuBLAS, ...
    3 sort: FAILED AssertionError: ...
    1 of 3 checks passed, 1 lacking

Named checks are run alone, also those that lack something: `cupy_checks.py matrix_product`.
"""

import importlib.metadata
import sys
import time
import traceback

import numpy

LONGEST_REASON = 300


class Checks:
    """The checks of one client."""

    def __init__(self, package):
        self.package = package
        self.all = []

    def __call__(self, function):
        """Adds a check."""
        self.all.append((function, None))
        return function

    def lacks(self, reason, when=True):
        """Adds a check that cannot pass yet, with the reason; where `when` is false it is one as any other."""

        def add(function):
            self.all.append((function, reason if when else None))
            return function

        return add

    def run(self, names=None):
        """Runs all, or those that are named, and ends the script; 1 where a check failed."""
        names = sys.argv[1:] if names is None else names
        unknown = set(names) - {function.__name__ for function, _ in self.all}
        if unknown:
            known = ", ".join(function.__name__ for function, _ in self.all)
            sys.exit(f"no check is called {', '.join(sorted(unknown))}; known: {known}")
        say(f"client {self.package} {importlib.metadata.version(self.package)}")
        passed = failed = lacking = 0
        for number, (function, reason) in enumerate(self.all, start=1):
            if names and function.__name__ not in names:
                continue
            if reason and not names:
                lacking += 1
                say(f"{number} {function.__name__}: lacks {reason}")
                continue
            why = attempt(function)
            passed, failed = passed + (why is None), failed + (why is not None)
            say(f"{number} {function.__name__}: " + ("ok" if why is None else f"FAILED {why}"))
        say(f"{passed} of {passed + failed + lacking} checks passed, {lacking} lacking")
        sys.exit(1 if failed else 0)


def attempt(function):
    """Runs one check; None where it passed, else why not in one line. The whole story goes to standard error."""
    start = time.monotonic()
    try:
        function()
        return None
    except Exception as error:  # any exception of a client is a failed check, and the next one still runs
        traceback.print_exc()
        words = " ".join(f"{type(error).__name__}: {error}".split())
        return words[:LONGEST_REASON]
    finally:
        print(f"{function.__name__}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)


def say(line):
    """A line for `cargo xtask`, at once: a crash must not take it along."""
    print(line, flush=True)


def same(found, expected):
    """Both hold the same values, in the same shape."""
    numpy.testing.assert_array_equal(numpy.asarray(found), numpy.asarray(expected), strict=False)


def close(found, expected, relative=1e-5, absolute=1e-6):
    """Both hold the same values but for rounding."""
    numpy.testing.assert_allclose(numpy.asarray(found), numpy.asarray(expected), rtol=relative, atol=absolute)


def random(*shape, seed=1, kind=numpy.float32):
    """Numbers of a normal distribution, the same in every run."""
    return numpy.random.default_rng(seed).standard_normal(shape).astype(kind)


def integers(count, *shape, seed=1, kind=numpy.int32):
    """Integers below a count, the same in every run."""
    return numpy.random.default_rng(seed).integers(0, count, shape).astype(kind)


def softmax(x):
    """Over the last axis."""
    powers = numpy.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def normalised(x, epsilon=1e-5):
    """Mean 0 and variance 1 over the last axis, as norms of layers and groups have them."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / numpy.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)
