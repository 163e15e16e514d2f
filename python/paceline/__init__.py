"""Where the time of frames and waits went, as Arrow tables.

Traces of any program are explained, scenarios run on simulated machines under chosen kernel schedulers, one of them
or thousands. What comes back are tables in Arrow's format, which pandas, Polars and DuckDB take as they are; times are
in nanoseconds, in columns that end in ``_ns``. Errors are one line that says what, where, and what to do.
"""

from __future__ import annotations

from ._calls import (
    Diagnosis,
    Experiment,
    Simulation,
    Topology,
    WhatIf,
    diagnose,
    experiment,
    simulate,
    topology,
    what_if,
)
from ._compare import Changes, compare
from ._fleet import DataSet, Failure, fleet, sweep
from ._native import Error, FailedError, InputError, Table, __version__

__all__ = [
    "Changes",
    "DataSet",
    "Diagnosis",
    "Error",
    "Experiment",
    "FailedError",
    "Failure",
    "InputError",
    "Simulation",
    "Table",
    "Topology",
    "WhatIf",
    "__version__",
    "compare",
    "diagnose",
    "experiment",
    "fleet",
    "simulate",
    "sweep",
    "topology",
    "what_if",
]
