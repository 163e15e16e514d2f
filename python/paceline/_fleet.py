"""Many traces and many simulated runs."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar, Union

from . import _native
from ._calls import StrPath, several
from ._native import InputError, Table
from ._progress import Progress

T = TypeVar("T")
OneOrMany = Union[T, Iterable[T]]

TABLES = {
    "traces": ("traces", "frames", "waits", "causes", "inversions", "losses"),
    "points": ("points", "spans"),
}


@dataclass(frozen=True)
class Failure:
    """A trace or a point with an error."""

    key: str
    error: str
    again: str
    """The command that repeats it."""


class DataSet(Mapping[str, Table]):
    """A folder of Parquet files, with a folder for each table: tables by their names.

    Each table is read when it is asked for, in the order of keys. DuckDB and Polars read ``path/TABLE/*.parquet``
    without it.
    """

    def __init__(self, path: StrPath, kind: str, made_with: str = "") -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.path = os.fspath(path)
        self.kind = kind
        self.native = _native.DataSet(self.path, kind, made_with)

    def __getitem__(self, table: str) -> Table:
        """A whole table."""
        return self.native.table(table)

    def __iter__(self) -> Any:
        """The names of the tables."""
        return iter(TABLES[self.kind])

    def __len__(self) -> int:
        """How many tables there are."""
        return len(TABLES[self.kind])

    @property
    def units(self) -> int:
        """How many traces or points are in it."""
        return len(self.native)

    @property
    def rows(self) -> int:
        """How many rows are in it, in all tables."""
        return sum(self.native.rows(table) for table in self)

    @property
    def failures(self) -> list[Failure]:
        """The traces or points with an error."""
        return [Failure(*failure) for failure in self.native.failures()]

    def close(self) -> None:
        """Let other processes write it; a data set without a name of its own goes away."""
        self.native.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> DataSet:
        """Close it at the end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<paceline.DataSet of {self.units} {self.kind} in {self.path!r}>"


def opened(out: StrPath | None, kind: str, made_with: str) -> DataSet:
    """The data set at ``out``, or one that goes away."""
    if out is not None:
        return DataSet(out, kind, made_with)
    temporary = tempfile.TemporaryDirectory(prefix="paceline-")
    data_set = DataSet(os.path.join(temporary.name, "data.parquet"), kind, made_with)
    data_set._temporary = temporary
    return data_set


def listed(given: Any) -> list[Any]:
    """One thing, or several."""
    if isinstance(given, (str, bytes, int, bool)) or not isinstance(given, Iterable):
        return [given]
    return list(given)


def sweep(
    scenario: OneOrMany[str],
    *,
    machine: OneOrMany[str] | None = None,
    policy: OneOrMany[str] | None = None,
    workers: OneOrMany[int] | None = None,
    hints: OneOrMany[bool] | None = None,
    seed: OneOrMany[int] = 1,
    out: StrPath | None = None,
    folder: StrPath = "",
    on: str | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> DataSet:
    """Run a scenario with every combination of what is given, each one value or several.

    By default all CPUs of this machine work. ``on="ray"`` uses the Ray cluster that this process is connected to or
    starts, and ``on="ray://…"`` or another address that one. ``out`` is a folder, which is continued if it is there;
    without it the results go away with the data set. Names of files are relative to ``folder``. A point that fails is
    a row with its ``error``.
    """
    given = {
        "scenario": scenario,
        "machine": machine,
        "policy": policy,
        "workers": workers,
        "hints": hints,
        "seed": seed,
    }
    at = None if on is None else address(on)
    table = json.dumps({key: listed(value) for key, value in given.items() if value is not None})
    folder = os.path.abspath(os.fspath(folder) or os.curdir)
    plan = _native.SweepPlan(table, folder)
    data_set = opened(out, "points", "")
    missing = plan.missing(data_set.native)
    bar = Progress("points", len(missing), progress)
    try:
        if on is None:
            plan.run(data_set.native, missing, threads, bar)
        else:
            from . import _ray

            _ray.sweep(plan, table, folder, missing, data_set.native, at, bar)
    except BaseException:
        data_set.close()
        raise
    finally:
        bar.close()
    return data_set


def fleet(
    traces: StrPath,
    *,
    out: StrPath | None = None,
    labels: str | None = None,
    slice: str | Iterable[str] = (),
    busy: str | Iterable[str] = (),
    waits: int = 20_000,
    on: str | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> DataSet:
    """Explain many traces: those below a folder, of a pattern such as ``"traces/**/*.pftrace*"``, or at an address.

    Addresses such as ``s3://bucket/traces/**`` want the package ``fsspec``. ``labels`` is a pattern of the beginnings
    of paths, such as ``"{device}/{build}/"``, for the columns ``device`` and ``build``. ``out`` and ``on`` are those
    of :func:`sweep`. A trace that cannot be read is a row with its ``error``.
    """
    options = (several(slice), several(busy), waits)
    at = None if on is None else address(on)
    given = os.fspath(traces)
    if "://" in given:
        from . import _remote

        return _remote.fleet(given, out, labels, options, on, threads, progress)
    plan = _native.FleetPlan(given, labels, options)
    data_set = opened(out, "traces", plan.made_with)
    try:
        missing = plan.missing(data_set.native)
        bar = Progress("traces", len(missing), progress)
        try:
            if on is None:
                plan.run(data_set.native, threads, bar)
            else:
                from . import _ray

                _ray.fleet(missing, options, data_set.native, at, bar)
        finally:
            bar.close()
    except BaseException:
        data_set.close()
        raise
    return data_set


def address(on: str) -> str | None:
    """The address of a Ray cluster; none: whichever this process has, or one of its own."""
    if on == "ray":
        return None
    if on.startswith("ray://") or on == "auto" or ":" in on:
        return on
    raise InputError(f'on={on!r}: give "ray", or the address of a Ray cluster, such as "ray://head:10001"')


