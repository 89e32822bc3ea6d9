"""What the book shows: the notebook, and a script of ten lines."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BOOK = Path(__file__).resolve().parents[2] / "docs" / "book"

SECONDS = 600


def test_the_notebook_of_the_book_runs(place):
    for package in ("nbclient", "ipykernel", "numpy", "pandas", "matplotlib"):
        pytest.importorskip(package)
    import nbclient
    import nbformat

    notebook = nbformat.read(BOOK / "python.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs of another day would not be checked"
    # Its kernel is this interpreter, whatever kernels the user has.
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "here", "language": "python"}
    done = nbclient.NotebookClient(
        notebook, timeout=SECONDS, startup_timeout=SECONDS, resources={"metadata": {"path": str(place)}}
    ).execute()
    shown = [output for cell in done.cells for output in cell.get("outputs", [])]
    pictures = [output for output in shown if "image/png" in output.get("data", {})]
    assert len(pictures) == 2
    assert any("this program sees: NVIDIA A100" in output.get("text", "") for output in shown)


def test_the_script_of_the_page_runs_a_program_and_plots_a_data_frame(place, vector_add):
    for package in ("pandas", "matplotlib"):
        pytest.importorskip(package)
    page = (BOOK / "python.md").read_text()
    script = re.search(r"```python\n(import sys\n.*?)```", page, re.DOTALL)[1]
    assert len([line for line in script.splitlines() if line]) <= 10
    (place / "script.py").write_text(script)
    words = [sys.executable, "script.py", *vector_add, "5000"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    assert "vector_add" in done.stdout and "cycles" in done.stdout
    assert (place / "cycles.png").read_bytes().startswith(b"\x89PNG")


def environment():
    """Ours, with pictures that need no screen."""
    return {**os.environ, "MPLBACKEND": "Agg"}
