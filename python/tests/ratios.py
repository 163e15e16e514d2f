"""What Python and Ray add, for `cargo xtask fleets`: seconds, one line for each round.

    ratios.py diagnose FILE ROUNDS | sweep POINTS ROUNDS | ray POINTS ROUNDS
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import pyarrow

import paceline


def diagnose(file: str) -> None:
    """A trace, with all its tables in pyarrow."""
    found = paceline.diagnose(file)
    tables = [pyarrow.table(table) for table in (found.traces, found.waits, found.causes, found.inversions)]
    assert sum(table.num_rows for table in tables) > 0


def sweep(points: int, at: int, on: str | None) -> None:
    """Points that no earlier call has done, one at a time."""
    with tempfile.TemporaryDirectory() as folder:
        seeds = range(at * points, (at + 1) * points)
        out = Path(folder) / "o.parquet"
        threads = 1 if on is None else None
        with paceline.sweep(
            "oversubscribed", seed=seeds, out=out, on=on, threads=threads, progress=False
        ) as found:
            assert found.units == points and not found.failures


def main(what: str, given: str, rounds: int) -> None:
    on = None
    if what == "ray":
        import ray

        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
        on = "ray"
        # A worker's first task imports the package.
        sweep(1, 1_000_000, on)
    for at in range(rounds):
        begin = time.perf_counter()
        if what == "diagnose":
            diagnose(given)
        else:
            sweep(int(given), at, on)
        print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
