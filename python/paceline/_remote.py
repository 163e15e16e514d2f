"""Fleets of traces at addresses, which the package ``fsspec`` reads."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from . import _native
from ._calls import StrPath
from ._fleet import DataSet, address, opened
from ._native import FailedError, InputError
from ._progress import Progress

if TYPE_CHECKING:
    from ._native import Options, Sent

RemoteTrace = tuple[str, str, "int | None", "str | None", "str | None"]
"""Key, address, size where the place tells it, device, build."""


TRIES = 3
"""How often a trace is asked for, a second and more apart, if the network is at fault."""
SIDECAR = ".labels.json"
FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ValueError, ImportError)
"""Errors that another try does not mend."""


@dataclass(frozen=True)
class Fetched:
    """What was fetched of a trace, or why nothing was."""

    key: str
    address: str
    size: int
    device: str | None
    build: str | None
    sidecar: bytes | None = None
    bytes: bytes | None = None
    error: str = ""

    @property
    def again(self) -> str:
        """What repeats it."""
        program = f"import paceline; print(paceline.diagnose({self.address!r}))"
        return f"python3 -c {shlex.quote(program)}"


def module(given: str) -> Any:
    """The package ``fsspec``."""
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError as why:
        raise InputError(f"{given}: addresses want the package fsspec ({why}); pip install 'paceline[fsspec]'") from why
    return fsspec


def opened_at(url: str) -> bytes:
    """The bytes at an address. It is final that they are not there, may not be read, or want another address or package:
    ``FINAL``."""
    fsspec = module(url)
    for tried in range(1, TRIES + 1):
        try:
            with fsspec.open(url, "rb", compression=None) as file:
                return bytes(file.read())
        except FINAL:
            raise
        except Exception as why:
            if tried == TRIES:
                raise FailedError(f"{url}: cannot be fetched: {line(why)}; call again to go on") from why
            time.sleep(tried)
    raise AssertionError("the last try returns or raises")


def line(why: BaseException) -> str:
    """An error in one line."""
    said = why.strerror if isinstance(why, OSError) and why.strerror else str(why)
    return " ".join(said.split()) or type(why).__name__


def fetched(url: str) -> bytes:
    """The bytes of the trace at an address."""
    try:
        return opened_at(url)
    except FINAL as why:
        raise InputError(f"{url}: cannot be read: {line(why)}") from why


def trace_at(trace: RemoteTrace) -> Fetched:
    """A trace of a fleet. One that is not there or may not be read has its error; else, an error ends the run."""
    key, url, size, device, build = trace
    about = Fetched(key, url, size or 0, device, build)
    try:
        read = opened_at(url)
        about = replace(about, bytes=read, size=len(read) if size is None else size)
    except FINAL as why:
        return replace(about, error=line(why))
    try:
        return replace(about, sidecar=opened_at(url + SIDECAR))
    except FileNotFoundError:
        return about
    except FINAL as why:
        return replace(about, bytes=None, error=f"{SIDECAR}: {line(why)}")


def explained(traces: Sequence[RemoteTrace], options: Options) -> Sent:
    """A part of traces that are fetched here."""
    return _native.part_of_fetched([trace_at(trace) for trace in traces], options)


def found(given: str, labels: str | None) -> list[RemoteTrace]:
    """The traces at an address: a pattern, or a folder."""
    fsspec = module(given)
    try:
        fs, path = fsspec.core.url_to_fs(given)
    except (ValueError, ImportError) as why:
        raise InputError(f"{given}: cannot be opened: {why}") from why
    is_pattern = bool(re.search(r"[*?\[]", path))
    root = re.split(r"[*?\[]", path)[0].rpartition("/")[0] if is_pattern else path.rstrip("/")
    try:
        listed = fs.glob(path, detail=True) if is_pattern else fs.find(path, detail=True)
    except FileNotFoundError:
        listed = {}
    except PermissionError as why:
        raise InputError(f"{given}: may not be listed: {line(why)}") from why
    except Exception as why:
        raise FailedError(f"{given}: cannot be listed: {line(why)}") from why
    traces: list[RemoteTrace] = []
    for name, about in sorted(listed.items()):
        last = name.rpartition("/")[2]
        if about["type"] != "file" or last.startswith(".") or last.endswith(SIDECAR):
            continue
        key = name.removeprefix(root).lstrip("/")
        device, build = _native.labels_of(labels, key) if labels is not None else (None, None)
        traces.append((key, fs.unstrip_protocol(name), about.get("size"), device, build))
    if not traces:
        raise InputError(f"{given}: no traces are there")
    return traces


def new(traces: Sequence[RemoteTrace], data_set: DataSet) -> list[RemoteTrace]:
    """The traces that are not in the data set yet."""
    missing = []
    for trace in traces:
        key, url, size, *_ = trace
        before = data_set.native.size_of(key)
        if before is None:
            missing.append(trace)
        elif size is not None and before != size:
            data_set.close()
            raise InputError(
                f"{url}: has {size} bytes, and had {before} when it was read into {data_set.path}; give another name "
                "for the data set"
            )
    return missing


def fleet(
    given: str,
    out: StrPath | None,
    labels: str | None,
    options: Options,
    on: str | None,
    threads: int | None,
    progress: bool | None,
) -> DataSet:
    """Explain the traces at an address.

    A trace that is not there, may not be read or is none is a row with its error. If the network is at fault, the run
    ends, and goes on when it is called again.
    """
    traces = found(given, labels)
    data_set = opened(out, "traces", f"addresses, labels {labels!r}, {options!r}")
    missing = new(traces, data_set)
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
