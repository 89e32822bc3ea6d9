"""Sentences of a study that hold or fail."""

import sys


class Claims:
    """Says each claim as it is made, and remembers those that fail."""

    def __init__(self):
        self.failures = []

    def claim(self, holds, sentence):
        """One claim."""
        print(("holds: " if holds else "FAILS: ") + sentence)
        if not holds:
            self.failures.append(sentence)

    def end(self):
        """Ends the script: 1 if a claim fails."""
        sys.exit(1 if self.failures else 0)
