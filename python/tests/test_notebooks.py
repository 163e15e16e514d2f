"""The notebooks of ``docs/notebooks``, from their first cells to their last.

With ``PACELINE_WRITE_NOTEBOOKS=1`` what their cells put out is written into them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

FOLDER = ROOT / "docs" / "notebooks"
WRITES = os.environ.get("PACELINE_WRITE_NOTEBOOKS") == "1"
CELL_SECONDS = 300

Book = Any


def read(path: Path) -> Book:
    """A notebook."""
    return nbformat.read(path, as_version=4)


def run(path: Path) -> Book:
    """The notebook with what its cells put out now."""
    book = read(path)
    # A kernel of this Python, whatever its user has registered.
    place = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(book, timeout=CELL_SECONDS, kernel_name="python3", resources=place).execute()
    for cell in code(book):
        # When it ran.
        cell.metadata.pop("execution", None)
    return book


def code(book: Book) -> list[Book]:
    """The cells that run."""
    return [cell for cell in book.cells if cell.cell_type == "code"]


def printed(book: Book) -> list[str]:
    """What each cell prints."""
    return [
        "".join(one.text for one in cell.outputs if one.output_type == "stream" and one.name == "stdout")
        for cell in code(book)
    ]


def shown(book: Book) -> list[list[list[str]]]:
    """Of what kinds the pictures and tables of each cell are."""
    kinds = ("display_data", "execute_result")
    return [[sorted(one.data) for one in cell.outputs if one.output_type in kinds] for cell in code(book)]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_says_what_happens(path: Path) -> None:
    """Goal: the notebooks run, and print what they hold. Method: each in a kernel of its own, as its reader would run
    it. What pictures and tables look like is up to other packages, so of these only the kinds are compared."""
    before, now = read(path), run(path)
    if WRITES:
        nbformat.write(now, path)
    else:
        assert printed(now) == printed(before)
        assert shown(now) == shown(before)
    assert any(printed(now)) and any(shown(now))
