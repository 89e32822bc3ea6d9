"""What the tests share."""

import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Every test works in a folder of its own, which nothing else sees."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def vector_add():
    """A CUDA program that needs no compiler."""
    return [sys.executable, PROGRAMS / "vector_add.py"]


@pytest.fixture
def ptx():
    """Its kernel."""
    sys.path.insert(0, str(PROGRAMS))
    try:
        import vector_add
    finally:
        sys.path.remove(str(PROGRAMS))
    return vector_add.PTX.decode()
