"""The forms: one file for each family of statements and operations. All files here are loaded."""

import importlib
import pkgutil


def load():
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")
