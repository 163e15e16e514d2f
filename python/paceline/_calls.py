"""One trace, one simulated run, one experiment, this machine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Union

from . import _native
from ._native import FailedError, InputError, Table

_SAFE_PATH = ["-P"] if sys.version_info >= (3, 11) else []
"""Not the folder at hand: a file there may have a module's name."""

StrPath = Union[str, "os.PathLike[str]"]
Columns = Sequence[tuple[str, str]]


def several(given: str | Iterable[str]) -> list[str]:
    """One text, or several."""
    return [given] if isinstance(given, str) else [str(one) for one in given]


@dataclass(frozen=True)
class Diagnosis:
    """What was found in a trace."""

    traces: Table
    """One row about the trace itself."""
    frames: Table
    """A row for each frame."""
    waits: Table
    """A row for each wait, frames included, the worst first."""
    causes: Table
    """The causes of each wait, which sum to its length."""
    inversions: Table
    """What kept an awaited thread from running although it could."""
    losses: Table
    """What is missing from the trace."""


def diagnose(
    trace: StrPath | bytes | bytearray | memoryview,
    *,
    slice: str | Iterable[str] = (),
    busy: str | Iterable[str] = (),
    waits: int = 1000,
    name: str = "trace",
) -> Diagnosis:
    """Explain the waits and frames in a recorded trace, given as a path, an address or bytes.

    Addresses such as ``s3://bucket/a.pftrace`` want the package ``fsspec``. ``slice``: only the slices with one of these texts in their names. ``busy``: slices with these texts are waits,
    also where the thread runs. ``waits``: the most that are explained. ``name`` is that of bytes in errors.
    """
    options = (several(slice), several(busy), waits)
    if isinstance(trace, str) and "://" in trace:
        from . import _remote

        tables = _native.diagnose_bytes(_remote.fetched(trace), trace, *options)
    elif isinstance(trace, (bytes, bytearray, memoryview)):
        tables = _native.diagnose_bytes(bytes(trace), name, *options)
    else:
        tables = _native.diagnose_file(os.fspath(trace), *options)
    return Diagnosis(**tables)


@dataclass(frozen=True)
class Simulation:
    """What a simulated run came to."""

    points: Table
    """One row about the run; ``error`` says which check failed."""
    spans: Table
    """What the scenario measures, by thread and name."""
    traces: Table | None = None
    """One row about its events; like the tables below, none if there are too many of them."""
    frames: Table | None = None
    waits: Table | None = None
    causes: Table | None = None
    inversions: Table | None = None
    losses: Table | None = None


def simulate(
    scenario: str,
    *,
    machine: str | None = None,
    policy: str | None = None,
    workers: int | None = None,
    hints: bool = False,
    seed: int = 1,
    folder: StrPath = "",
) -> Simulation:
    """Run a scenario on a simulated machine under a chosen kernel scheduler, and explain what its threads waited for.

    Scenario, machine and policy are names or files; names of files are relative to ``folder``.
    """
    point = {
        "scenario": scenario,
        "machine": machine,
        "policy": policy,
        "workers": workers,
        "hints": hints,
        "seed": seed,
    }
    text = json.dumps({key: value for key, value in point.items() if value is not None})
    return Simulation(**_native.simulate(text, os.fspath(folder)))


def command(arguments: list[str], *, allows_failure: bool = False) -> Any:
    """What a command prints with ``--json``. ``allows_failure``: also if it failed, as long as it printed it."""
    text, failed = _native.command([*arguments, "--json"])
    if failed is not None and not (allows_failure and text):
        is_input, line = failed
        raise (InputError if is_input else FailedError)(line)
    return json.loads(text)


def table(name: str, columns: Columns, rows: Iterable[Sequence[object]]) -> Table:
    """A table of rows."""
    return Table.from_json(name, list(columns), json.dumps([list(row) for row in rows]))


@dataclass(frozen=True)
class WhatIf:
    """How long waits would have been with a change."""

    waits: Table
    """A row for each change and wait: recorded, replayed as it was, and predicted."""
    report: dict[str, Any]
    """The whole object of ``paceline diagnose --what-if … --json``."""


def what_if(
    trace: StrPath,
    change: str | Iterable[str],
    *,
    slice: str | Iterable[str] = (),
    busy: str | Iterable[str] = (),
    thread: str | Iterable[str] = (),
    policy: str | None = None,
    machine: str | None = None,
    seeds: int = 5,
) -> WhatIf:
    """Run a recording again with a change, such as ``"nice:hog=19"``; ``paceline diagnose --help`` lists them."""
    arguments = ["diagnose", os.fspath(trace), "--seeds", str(seeds)]
    options = {"--what-if": change, "--slice": slice, "--busy": busy, "--thread": thread}
    for option, given in options.items():
        for one in several(given):
            arguments += [option, one]
    for option, value in (("--policy", policy), ("--machine", machine)):
        if value is not None:
            arguments += [option, value]
    report = command(arguments, allows_failure=True)

    def median(times: dict[str, Any] | None) -> object:
        return None if times is None else times["median"]

    rows = []
    for changed in report["what_if"]:
        predicted = {one["wait"]: one for one in changed["waits"]}
        for at, wait in enumerate(report["waits"]):
            # One that was refused has no prediction.
            one = predicted.get(at, {"predicted_ns": None, "gain_ns": None})
            rows.append(
                (
                    changed["text"],
                    at,
                    wait["name"],
                    wait["thread"],
                    wait["tid"],
                    wait["start_ns"],
                    wait["recorded_ns"],
                    median(wait["replayed_ns"]),
                    median(one["predicted_ns"]),
                    one["gain_ns"],
                    wait["error"],
                    wait["refused"],
                )
            )
    columns = (
        ("change", "text"),
        ("wait", "integer"),
        ("name", "text"),
        ("thread", "text"),
        ("tid", "integer"),
        ("start_ns", "integer"),
        ("recorded_ns", "integer"),
        ("replayed_ns", "integer"),
        ("predicted_ns", "integer"),
        ("gain_ns", "integer"),
        ("error_share", "number"),
        ("refused", "text"),
    )
    return WhatIf(table("what_if", columns, rows), report)


@dataclass(frozen=True)
class Experiment:
    """An article's experiment, run again."""

    rows: dict[str, Table]
    """Its tables by their titles; times are in nanoseconds, and text has its unit in it."""
    claims: Table
    """A row for each claim, and whether it holds; with ``sensitivity``, in how many settings, too."""
    varied: Table
    """With ``sensitivity``, a row for each claim and each setting that changes what it measures."""
    report: dict[str, Any]
    """The whole object of ``paceline experiment … --json``."""


def experiment(
    name: str,
    *,
    quick: bool = False,
    where: str = "sim",
    seed: int = 1,
    set: str | None = None,
    sensitivity: bool = False,
) -> Experiment:
    """Run the experiment of an article again, and judge the article's claims.

    ``where``: ``"sim"``, ``"real"`` (on this machine) or ``"both"``. ``set``: another value of something that was
    chosen, ``"NAME=NUMBER"``. ``sensitivity``: each such value and the seed is another one, one at a time, and a claim
    has to hold in nine of ten of these settings. That takes minutes, and processes of this interpreter.
    """
    if where not in ("sim", "real", "both"):
        raise InputError(f'where={where!r}: give "sim", "real" or "both"')
    arguments = ["experiment", name, "--seed", str(seed)]
    arguments += ["--quick"] if quick else []
    arguments += [f"--{where}"] if where != "both" else []
    arguments += ["--set", set] if set is not None else []
    if sensitivity:
        arguments.append("--sensitivity")
        if sys.executable:
            # Where the interpreter is part of another program, that one is asked, which then says what is wrong.
            _native.is_started_by([sys.executable, *_SAFE_PATH, "-m", "paceline"])
    report = command(arguments, allows_failure=True)
    by_title: dict[str, list[dict[str, Any]]] = {}
    for row in report["rows"]:
        by_title.setdefault(row["table"], []).append(row)
    rows = {title: of_objects(title, those) for title, those in by_title.items()}
    keys = ("id", "text", "by", "claimed", "got", "unit", "holds", "ok", "holds_in", "settings", "verdict", "where", "note")
    claims = [{key: claim.get(key) for key in keys} for claim in report["claims"]]
    return Experiment(rows, of_objects("claims", claims), varied(report["claims"]), report)


def varied(claims: Iterable[dict[str, Any]]) -> Table:
    """What came of the claims in other settings."""
    columns = (
        ("claim", "text"),
        ("value", "text"),
        ("setting", "text"),
        ("claimed", "text"),
        ("got", "number"),
        ("holds", "bool"),
    )
    keys = [name for name, _ in columns[1:]]
    rows = [(claim["id"], *(one[key] for key in keys)) for claim in claims for one in claim["varied"]]
    return table("varied", columns, rows)


def of_objects(name: str, objects: Sequence[dict[str, Any]]) -> Table:
    """A table of objects with about the same keys: a column for each key, numbers if all its values are."""
    keys = list(dict.fromkeys(key for one in objects for key in one if key != "table"))
    columns = []
    rows: list[list[object]] = [[] for _ in objects]
    for key in keys:
        values = [one.get(key) for one in objects]
        told = [value for value in values if value is not None]
        if told and all(isinstance(value, bool) for value in told):
            kind = "bool"
        elif told and all(isinstance(value, int) and not isinstance(value, bool) for value in told):
            kind = "integer"
        elif told and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in told):
            kind = "number"
        else:
            kind = "text"
            values = [
                value if value is None or isinstance(value, str) else json.dumps(value) for value in values
            ]
        columns.append((key, kind))
        for row, value in zip(rows, values):
            row.append(value)
    return table(name, columns, rows)


@dataclass(frozen=True)
class Topology:
    """What the machine is, and the workers that the job system would have on it."""

    cpus: Table
    """A row for each CPU."""
    workers: Table
    """A row for each worker."""
    report: dict[str, Any]
    """The whole object of ``paceline topology --json``."""


def topology(sysroot: StrPath | None = None) -> Topology:
    """Describe this machine, or another one by a folder or archive that holds its sys and proc."""
    arguments = ["topology"]
    if sysroot is not None:
        arguments += ["--sysroot", os.fspath(sysroot)]
    report = command(arguments)

    def place(cpu: int, groups: Sequence[Sequence[int]]) -> int | None:
        return next((at for at, group in enumerate(groups) if cpu in group), None)

    rows = []
    for cpu in report["present"]:
        of_class = next((one for one in report["classes"] if cpu in one["cpus"]), None)
        rows.append(
            (
                cpu,
                of_class and of_class["name"],
                of_class and of_class["capacity"],
                place(cpu, report["smt"]),
                place(cpu, report["llc"]),
                place(cpu, report["numa"]),
                cpu in report["online"],
                cpu in report["allowed"],
                cpu in report["isolated"],
                cpu in report["fast"],
            )
        )
    columns = [("cpu", "integer"), ("class", "text"), ("capacity", "integer")]
    columns += [(name, "integer") for name in ("core", "cache", "node")]
    columns += [(name, "bool") for name in ("online", "allowed", "isolated", "fast")]
    workers = [
        (at, one["class"], ",".join(map(str, one["cpus"])), ",".join(one["lanes"]))
        for at, one in enumerate(report["workers"])
    ]
    of_workers = (("worker", "integer"), ("class", "text"), ("cpus", "text"), ("lanes", "text"))
    return Topology(table("cpus", columns, rows), table("workers", of_workers, workers), report)
