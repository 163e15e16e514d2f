"""Sweeps and fleets on this machine, and the guide."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pyarrow
import pytest

import paceline

ROOT = Path(__file__).resolve().parents[2]


def same(one: paceline.DataSet, other: paceline.DataSet) -> bool:
    """Whether all tables of both are equal, in the order of keys."""
    assert list(one) == list(other)
    return all(pyarrow.table(one[name]).equals(pyarrow.table(other[name])) for name in one)


def test_a_sweep_is_continued(tmp_path: Path) -> None:
    """Goal: a sweep with more seeds has each point once. Method: three seeds and then five, and five at once."""
    policies = ["eevdf-6.6", "eevdf-6.18"]
    calls = []

    def progress(seeds: range, out: Path | None) -> paceline.DataSet:
        return paceline.sweep("game-and-build", policy=policies, seed=seeds, out=out, progress=False)

    with progress(range(3), tmp_path / "a") as data_set:
        calls.append(data_set.units)
    with progress(range(5), tmp_path / "a") as continued, progress(range(5), None) as whole:
        calls.append(continued.units)
        assert same(continued, whole)
    assert calls == [6, 10]


def test_a_fleet_has_labels_and_failures(made_fleet: Path, tmp_path: Path, duckdb: ModuleType) -> None:
    """Goal: every trace is there with its device and build, and a broken file is a row. Method: 301 files."""
    found = paceline.fleet(made_fleet, labels="{device}/{build}/", out=tmp_path / "f", progress=False)
    with found as data_set:
        assert data_set.units == 301
        traces = data_set["traces"]
        counts = duckdb.sql(
            "SELECT device, build, count(*), count(error) FROM traces GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        assert counts == [
            ("phone", "1.0", 76, 1),
            ("phone", "2.0", 75, 0),
            ("tablet", "1.0", 75, 0),
            ("tablet", "2.0", 75, 0),
        ]
        assert [failure.key for failure in data_set.failures] == ["phone/1.0/broken.txt"]
        assert data_set["inversions"].num_rows > 0
    pattern = str(made_fleet / "**" / "*.txt")
    with paceline.fleet(pattern, labels="{device}/{build}/", progress=False) as by_pattern:
        assert by_pattern["traces"].to_pydict() == traces.to_pydict()


def test_builds_are_compared(made_fleet: Path, tmp_path: Path, duckdb: ModuleType) -> None:
    """Goal: a comparison is the command's, from paths and from open data sets, and its rows are those of the file
    that it writes. Method: two builds of 150 traces each, means against a query over all rows; mistakes.
    """
    with paceline.fleet(made_fleet, labels="{device}/{build}/", progress=False) as data_set:
        out, report = tmp_path / "changes.parquet", tmp_path / "changes.html"
        found = paceline.compare(data_set, builds=("1.0", "2.0"), draws=200, out=out, report=report)
        assert found.traces == (150, 150)
        assert found.grew + found.shrank + found.same + found.few == found.table.num_rows > 0
        assert found.table.units["change_ns"] == "ns" and "interval" in found.table.meanings["low_ns"]
        changes = pyarrow.table(found.table)
        assert duckdb.sql(f"FROM '{out}'").fetchall() == duckdb.sql("FROM changes").fetchall()
        assert report.read_text().startswith("<!DOCTYPE html>")
        row = duckdb.sql("FROM changes WHERE what = 'cause' AND verdict != 'few' ORDER BY waits_a DESC LIMIT 1")
        told = dict(zip(row.columns, row.fetchall()[0]))
        waits, causes = data_set["waits"], data_set["causes"]
        chosen = "wait_group = $group AND build = $build AND process IS NOT DISTINCT FROM $process AND kind = $wait"
        for side, build in (("a", "1.0"), ("b", "2.0")):
            named = {
                "group": told["wait_group"],
                "build": build,
                "process": told["process"],
                "wait": told["wait_kind"],
            }
            [(ns, count)] = duckdb.execute(
                f"""WITH chosen AS (SELECT trace, wait FROM waits WHERE {chosen})
                SELECT (SELECT sum(cause_ns) FROM causes JOIN chosen USING (trace, wait)
                        WHERE kind = $kind AND role IS NOT DISTINCT FROM $who), (SELECT count(*) FROM chosen)""",
                {**named, "kind": told["kind"], "who": told["who"]},
            ).fetchall()
            assert told[f"waits_{side}"] == count
            assert told[f"{side}_ns"] == pytest.approx(ns / count, rel=1e-12)
        again = paceline.compare(data_set.path, data_set.path, builds=("1.0", "2.0"), draws=200)
        assert pyarrow.table(again.table).equals(changes)
        with pytest.raises(paceline.InputError, match="there are: 1.0, 2.0"):
            paceline.compare(data_set, builds=("1.0", "3.0"))
        with pytest.raises(paceline.InputError, match="two builds"):
            paceline.compare(data_set)
        with pytest.raises(paceline.InputError, match="100 to 20000"):
            paceline.compare(data_set, builds=("1.0", "2.0"), draws=1)
        with pytest.raises(paceline.InputError, match="not negative"):
            paceline.compare(data_set, builds=("1.0", "2.0"), seed=-1)
    with pytest.raises(paceline.InputError, match="no data set of traces"):
        paceline.compare(made_fleet, tmp_path)


def test_addresses_are_fetched(traces: Path, tmp_path: Path) -> None:
    """Goal: traces at an address have the rows of files. Method: fsspec's own addresses of files."""
    pytest.importorskip("fsspec")
    pattern = "local-*.ftrace.txt.gz"
    with paceline.fleet(f"file://{traces}/{pattern}", progress=False) as remote:
        with paceline.fleet(traces / pattern, progress=False) as local:
            assert remote.units == local.units > 3
            assert same(remote, local)


def test_addresses_have_sidecars(traces: Path, tmp_path: Path) -> None:
    """Goal: a sidecar file counts at an address as it does in a folder, whether it is listed or not; a wrong one is
    the error of its trace. Method: the same files in a folder and in memory, by a folder and by a pattern."""
    fsspec = pytest.importorskip("fsspec")
    text = (traces / "local-futex.ftrace.txt.gz").read_bytes()
    files = {
        "s22/7/a.txt.gz": text,
        "s22/7/b.txt.gz": text,
        "s22/7/b.txt.gz.labels.json": b'{"build": "8"}',
        "s22/7/c.txt.gz": text,
        "s22/7/c.txt.gz.labels.json": b'{"bild": "8"}',
        "s22/7/d.txt.gz": text,
        "s22/7/d.txt.gz.labels.json": b"\xff",
    }
    for name, content in files.items():
        file = tmp_path / "traces" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        fsspec.filesystem("memory").pipe_file(f"/sidecars/{name}", content)
    for given in ("sidecars", "sidecars/**/*.gz"):
        with paceline.fleet(f"memory://{given}", labels="{device}/{build}/", progress=False) as remote:
            with paceline.fleet(tmp_path / "traces", labels="{device}/{build}/", progress=False) as local:
                rows = [pyarrow.table(one["traces"]).drop(["error", "again"]) for one in (remote, local)]
                assert rows[0].equals(rows[1])
                assert rows[0]["build"].to_pylist() == ["7", "8", "7", "7"]
                assert [one.key for one in remote.failures] == [one.key for one in local.failures]
                wrong = remote.failures[0]
                assert wrong.key == "s22/7/c.txt.gz" and "labels.json" in wrong.error and "bild" in wrong.error
                assert "memory://" in wrong.again


def test_addresses_that_fail(traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a trace that may not be read is a row; a network at fault ends the run in one line, which goes on when it
    is called again; a trace that has grown is not mixed with the old one. Method: a place in memory that fails."""
    fsspec = pytest.importorskip("fsspec")
    from fsspec.implementations.memory import MemoryFileSystem

    outages = {"b": 3}
    tried = []

    class Failing(MemoryFileSystem):
        protocol = "failing"
        store: dict[str, object] = {}
        pseudo_dirs = [""]

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return "/" + path.removeprefix("failing://").strip("/")

        def _open(self, path: str, *given: object, **named: object) -> object:
            name = path.rpartition("/")[2]
            tried.append(name)
            if name == "private":
                raise PermissionError(13, "Permission denied", path)
            if outages.get(name, 0) > 0:
                outages[name] -= 1
                raise ConnectionError("the network is\nunreachable")
            return super()._open(path, *given, **named)

    fsspec.register_implementation("failing", Failing, clobber=True)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    place = fsspec.filesystem("failing")
    for name in ("a", "b", "private"):
        place.store[f"/t/{name}"] = fsspec.filesystem("memory").open(f"/kept/{name}", "wb")
        place.store[f"/t/{name}"].write((traces / "local-futex.ftrace.txt.gz").read_bytes())
    out = tmp_path / "out"
    with pytest.raises(paceline.FailedError, match="failing:///?t/b: cannot be fetched: the network is unreachable"):
        paceline.fleet("failing://t", out=out, threads=1, progress=False)
    assert tried.count("b") == 3
    with paceline.fleet("failing://t", out=out, threads=1, progress=False) as data_set:
        assert data_set.units == 3 and [one.key for one in data_set.failures] == ["private"]
        assert "Permission denied" in data_set.failures[0].error
    assert tried.count("a") == 1
    place.store["/t/a"].write(b"more")
    with pytest.raises(paceline.InputError, match="give another name for the data set"):
        paceline.fleet("failing://t", out=out, progress=False)
    with pytest.raises(paceline.InputError, match="Permission denied"):
        paceline.diagnose("failing://t/private")
    file = traces / "local-futex.ftrace.txt.gz"
    assert len(paceline.diagnose("failing://t/b").waits) == len(paceline.diagnose(file).waits)
    with pytest.raises(paceline.InputError, match="no traces are there"):
        paceline.fleet("memory://nothing/here", progress=False)
    slept = []
    monkeypatch.setattr("time.sleep", slept.append)
    for call in (paceline.diagnose, lambda url: paceline.fleet(url, progress=False)):
        with pytest.raises(paceline.InputError, match="no-such-place://a"):
            call("no-such-place://a")
    assert not slept


def test_what_is_there_is_not_lost(tmp_path: Path) -> None:
    """Goal: a data set is written by one at a time, and nothing else is written over. Method: both."""
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(paceline.InputError, match="is a file"):
        paceline.sweep("galaxy-s22-inversion", out=tmp_path / "mine")
    with paceline.sweep("galaxy-s22-inversion", out=tmp_path / "a"):
        with pytest.raises(paceline.InputError, match="writes this data set"):
            paceline.sweep("galaxy-s22-inversion", out=tmp_path / "a")
    paceline.sweep("galaxy-s22-inversion", out=tmp_path / "a").close()


def test_the_guide_says_what_happens(tmp_path: Path, duckdb: ModuleType, polars: ModuleType) -> None:
    """Goal: the guide's queries and programs work on what its commands write. Method: all of it, in order."""
    guide = (ROOT / "docs/guide/fleet.md").read_text()
    (tmp_path / "testdata").symlink_to(ROOT / "testdata")
    blocks = re.findall(r"^```(\S*)(?: title=(\S+))?\n(.*?)^```", guide, re.S | re.M)
    shown = ran = 0
    last = ""
    names: dict[str, object] = {}
    for language, title, text in blocks:
        if title:
            (tmp_path / title).write_text(text)
        if language == "console":
            command = text.splitlines()[0].removeprefix("$ ")
            if command.startswith("paceline "):
                arguments = re.findall(r"'([^']*)'|(\S+)", command)
                line = [quoted or plain for quoted, plain in arguments][1:]
                printed, failed = paceline._native.command(line)
                # Of a comparison something that grew is a result.
                assert printed and (failed is None or "grew beyond chance" in failed[1])
                ran += 1
        elif language == "sh" and text.startswith("for "):
            paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            subprocess.run(["sh", "-ec", text], check=True, env={**os.environ, "PATH": paths})
            ran += 1
        elif language == "sql":
            last = table(text, duckdb)
        elif language == "text" and last:
            assert text.strip() == last, text
            shown += 1
        elif language == "python" and "ray" not in text:
            exec(compile(text, "the guide", "exec"), names)
            ran += 1
    assert shown >= 3 and ran >= 3


def table(query: str, duckdb: ModuleType) -> str:
    """The rows of a query, with bars between columns."""
    relation = duckdb.sql(query)
    rows = [relation.columns, *relation.fetchall()]
    return "\n".join(" | ".join(str(value) for value in row) for row in rows)
