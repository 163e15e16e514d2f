"""Sweeps and fleets on a Ray cluster.

A task is a number of units, and a function of what it is given: Ray may run it again on another node if one is lost.
The task's result is a part, Parquet in memory. This process alone writes, and writes a part once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from ._native import FailedError, InputError
from ._progress import Progress

if TYPE_CHECKING:
    from ._native import Options, Sent, SentTrace

TASK_SECONDS = 1.0
"""How long a task is to take: what Ray adds to each is a few milliseconds."""
TASK_UNITS = 1000
"""The most units of a task: what is lost with a node."""
AHEAD = 3
"""How many tasks there are for each CPU, waiting ones included."""


def connected(address: str | None) -> Any:
    """The module of a Ray that is connected to a cluster."""
    try:
        import ray  # type: ignore[import-not-found, unused-ignore]
    except ImportError as why:
        raise InputError(f"on='ray' wants the package ray ({why}); pip install 'paceline[ray]'") from why
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False)
    return ray


def of_points(table: str, folder: str, positions: list[int], keys: list[str]) -> tuple[Sent, float]:
    """A part of a sweep, and how long it took."""
    began = time.monotonic()
    plan = _native.SweepPlan(table, folder)
    return plan.part(positions, keys), time.monotonic() - began


def of_traces(traces: list[SentTrace], options: Options) -> tuple[Sent, float]:
    """A part of a fleet, and how long it took."""
    began = time.monotonic()
    return _native.part_of_files(traces, options), time.monotonic() - began


def sweep(
    plan: _native.SweepPlan,
    table: str,
    folder: str,
    missing: Sequence[int],
    data_set: _native.DataSet,
    address: str | None,
    progress: Progress,
) -> None:
    """Run the missing points on a cluster."""
    ray = connected(address)
    # Both are the same for all tasks.
    shared = [ray.put(table), ray.put(folder)]
    keys = plan.keys()
    task = ray.remote(num_cpus=1, max_retries=-1)(of_points)

    def start(positions: Sequence[int]) -> Any:
        return task.remote(*shared, list(positions), [keys[at] for at in positions])

    work(ray, missing, start, data_set, progress)


def fleet(
    missing: Sequence[SentTrace],
    options: Options,
    data_set: _native.DataSet,
    address: str | None,
    progress: Progress,
) -> None:
    """Explain the missing traces on a cluster; every node sees them by the same paths."""
    ray = connected(address)
    task = ray.remote(num_cpus=1, max_retries=-1)(of_traces)

    def start(traces: Sequence[SentTrace]) -> Any:
        return task.remote(list(traces), options)

    work(ray, missing, start, data_set, progress)


def work(
    ray: Any,
    units: Sequence[Any],
    start: Callable[[Sequence[Any]], Any],
    data_set: _native.DataSet,
    progress: Progress,
) -> None:
    """Start tasks for all units, a few ahead, and write their parts as they come."""
    waiting = deque(units)
    running: dict[Any, int] = {}
    size = 1
    done = failed = 0
    try:
        while waiting or running:
            cpus = int(ray.cluster_resources().get("CPU", 1))
            while waiting and len(running) < max(1, AHEAD * cpus):
                # The last tasks are small, so that all nodes end together.
                count = max(1, min(size, len(waiting) // (2 * max(1, cpus)) or 1))
                chunk = [waiting.popleft() for _ in range(min(count, len(waiting)))]
                running[start(chunk)] = len(chunk)
            ready, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
            for task in ready:
                count = running.pop(task)
                try:
                    sent, seconds = ray.get(task)
                except ray.exceptions.RayTaskError as why:
                    cause = why.cause
                    if isinstance(cause, _native.Error):
                        raise type(cause)(str(cause)) from why
                    raise FailedError(f"a task failed on the cluster: {cause!r}") from why
                data_set.commit(sent)
                done += count
                failed += sent[3]
                if seconds > 0:
                    wanted = int(count * TASK_SECONDS / seconds)
                    size = max(1, min(TASK_UNITS, 2 * size, wanted))
            progress(done, failed)
    except BaseException:
        for task in running:
            ray.cancel(task, force=False)
        raise
