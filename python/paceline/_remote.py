"""Fleets of traces at addresses, which the package ``fsspec`` reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from . import _native
from ._calls import StrPath
from ._fleet import DataSet, address, opened
from ._native import InputError
from ._progress import Progress

if TYPE_CHECKING:
    from ._native import Options, Sent

RemoteTrace = tuple[str, str, int, str | None, str | None]
"""Key, address, size, device, build."""


def explained(traces: Sequence[RemoteTrace], options: Options) -> Sent:
    """A part of traces that are fetched here."""
    import fsspec  # type: ignore[import-untyped]

    fetched = []
    for key, url, _, device, build in traces:
        with fsspec.open(url, "rb", compression=None) as file:
            fetched.append((key, file.read(), device, build))
    return _native.part_of_bytes(fetched, options)


def found(given: str, labels: str | None) -> list[RemoteTrace]:
    """The traces at an address: a pattern, or a folder."""
    try:
        import fsspec
    except ImportError as why:
        raise InputError(f"{given}: addresses want the package fsspec ({why}); pip install 'paceline[fsspec]'") from why
    try:
        fs, path = fsspec.core.url_to_fs(given)
    except (ValueError, ImportError) as why:
        raise InputError(f"{given}: cannot be opened: {why}") from why
    is_pattern = bool(re.search(r"[*?\[]", path))
    root = re.split(r"[*?\[]", path)[0].rpartition("/")[0] if is_pattern else path.rstrip("/")
    listed = fs.glob(path, detail=True) if is_pattern else fs.find(path, detail=True)
    traces: list[RemoteTrace] = []
    for name, about in sorted(listed.items()):
        last = name.rpartition("/")[2]
        if about["type"] != "file" or last.startswith(".") or last.endswith(".labels.json"):
            continue
        key = name.removeprefix(root).lstrip("/")
        device, build = _native.labels_of(labels, key) if labels is not None else (None, None)
        traces.append((key, fs.unstrip_protocol(name), about["size"], device, build))
    if not traces:
        raise InputError(f"{given}: no traces are there")
    return traces


def fleet(
    given: str,
    out: StrPath | None,
    labels: str | None,
    options: Options,
    on: str | None,
    threads: int | None,
    progress: bool | None,
) -> DataSet:
    """Explain the traces at an address. A trace that cannot be fetched ends the run."""
    traces = found(given, labels)
    data_set = opened(out, "traces", f"addresses, labels {labels!r}, {options!r}")
    missing = [trace for trace in traces if not data_set.native.has(trace[0])]
    bar = Progress("traces", len(missing), progress)
    try:
        if on is None:
            on_threads(missing, options, data_set.native, threads, bar)
        else:
            on_ray(missing, options, data_set.native, address(on), bar)
    except BaseException:
        data_set.close()
        raise
    finally:
        bar.close()
    return data_set


def on_threads(
    missing: Sequence[RemoteTrace],
    options: Options,
    data_set: _native.DataSet,
    threads: int | None,
    progress: Progress,
) -> None:
    """One trace on each thread at a time; the interpreter's lock is free while they are explained."""
    import os

    width = threads or len(os.sched_getaffinity(0))
    done = failed = 0
    pending: set[Future[Sent]] = set()
    waiting = iter(missing)
    with ThreadPoolExecutor(width) as pool:
        while True:
            while len(pending) < width and (trace := next(waiting, None)) is not None:
                pending.add(pool.submit(explained, [trace], options))
            if not pending:
                return
            ready, pending = wait(pending, return_when=FIRST_COMPLETED)
            for one in ready:
                sent = one.result()
                data_set.commit(sent)
                done += 1
                failed += sent[3]
            progress(done, failed)


def on_ray(
    missing: Sequence[RemoteTrace],
    options: Options,
    data_set: _native.DataSet,
    at: str | None,
    progress: Progress,
) -> None:
    """The same on a cluster, whose nodes fetch what they explain."""
    import time

    from . import _ray

    ray = _ray.connected(at)

    def timed(traces: Sequence[RemoteTrace], options: Options) -> tuple[Sent, float]:
        began = time.monotonic()
        return explained(traces, options), time.monotonic() - began

    task = ray.remote(num_cpus=1, max_retries=-1)(timed)

    def start(traces: Sequence[Any]) -> Any:
        return task.remote(list(traces), options)

    _ray.work(ray, missing, start, data_set, progress)
