"""Two fleets, or two builds of one, against each other."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Union

from . import _native
from ._calls import StrPath
from ._fleet import DataSet
from ._native import InputError, Table

Fleet = Union[StrPath, DataSet]


@dataclass(frozen=True)
class Changes:
    """What grew and what shrank from A to B."""

    table: Table
    """A row for each wait, cause and inversion: what grew first, then what shrank, then the rest."""
    traces: tuple[int, int]
    """How many traces of A and of B there are that could be read."""
    grew: int
    """How many rows grew beyond chance."""
    shrank: int
    same: int
    """How many rows chance alone may have changed."""
    few: int
    """How many rows have no interval: fewer than 8 traces of A or of B tell of them."""


def compare(
    a: Fleet,
    b: Fleet | None = None,
    *,
    builds: tuple[str, str] | None = None,
    device: str | None = None,
    draws: int = 2000,
    seed: int = 1,
    out: StrPath | None = None,
    report: StrPath | None = None,
) -> Changes:
    """Compare two fleets, or two builds of one: which causes and inversions grew from A to B.

    Intervals are those of a bootstrap that draws whole traces ``draws`` times by ``seed``: 95 % for each row alone,
    and verdicts for all rows together. ``builds`` are one of A and one of B; without ``b`` both are of A. ``device``:
    only its traces. ``out`` is a Parquet file and ``report`` a page, which are written.
    """
    if b is None and builds is None:
        raise InputError("compare: give two data sets, or two builds of one")
    if builds is not None and (isinstance(builds, str) or len(builds) != 2):
        raise InputError(f"builds={builds!r}: give two of them, that of A and that of B")
    if not (0 <= draws < 1 << 32 and 0 <= seed < 1 << 64):
        raise InputError(f"draws={draws}, seed={seed}: give numbers that are not negative, of 32 and 64 bits")
    first, second = builds or (None, None)
    table, traces, counts = _native.compare(
        (path(a), first),
        (path(a if b is None else b), second),
        device,
        (draws, seed),
        (None if out is None else os.fspath(out), None if report is None else os.fspath(report)),
    )
    return Changes(table, traces, *counts)


def path(fleet: Fleet) -> str:
    """Where a data set is."""
    return fleet.path if isinstance(fleet, DataSet) else os.fspath(fleet)
