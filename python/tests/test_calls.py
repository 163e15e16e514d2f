"""One trace, one run, one experiment, this machine; and errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pyarrow
import pytest

import paceline

FUTEX = "local-futex.ftrace.txt.gz"


def test_a_diagnosis_is_that_of_the_command(traces: Path) -> None:
    """Goal: the tables say what the command says. Method: waits and inversions of a trace, both ways."""
    found = paceline.diagnose(traces / FUTEX)
    out = subprocess.run(
        [sys.executable, "-m", "paceline", "diagnose", str(traces / FUTEX), "--json"],
        capture_output=True,
        check=True,
    )
    report = json.loads(out.stdout)
    waits = found.waits.to_pydict()
    assert waits["duration_ns"] == [wait["duration_ns"] for wait in report["waits"]]
    assert waits["thread"] == [wait["thread"] for wait in report["waits"]]
    told = [(one["kind"], one["ns"], one["wait"]) for one in report["inversions"]]
    columns = found.inversions.to_pydict()
    assert list(zip(columns["kind"], columns["inversion_ns"], columns["wait"])) == told
    losses = found.losses.to_pydict()
    assert dict(zip(losses["loss"], losses["count"])) == report["losses"]


def test_causes_sum_to_their_waits(traces: Path, duckdb: ModuleType) -> None:
    """Goal: tables of bytes are those of the file, and causes sum to lengths. Method: DuckDB, on both."""
    found = paceline.diagnose((traces / FUTEX).read_bytes(), name=str(traces / FUTEX))
    waits, causes = found.waits, found.causes
    rows = duckdb.sql(
        "SELECT count(*) FROM waits JOIN (SELECT wait, sum(cause_ns) AS ns FROM causes GROUP BY wait) "
        "USING (wait) WHERE ns = duration_ns"
    ).fetchall()
    assert rows == [(waits.num_rows,)] and waits.num_rows > 0
    assert pyarrow.table(waits).equals(pyarrow.table(paceline.diagnose(traces / FUTEX).waits))


def test_tables_are_arrows(traces: Path, polars: ModuleType) -> None:
    """Goal: pyarrow, Polars and pandas' way take tables with their units. Method: one table, each of them."""
    table = paceline.diagnose(traces / FUTEX).causes
    arrow = pyarrow.table(table)
    assert arrow.schema.field("cause_ns").metadata[b"unit"] == b"ns"
    assert table.units["cause_ns"] == "ns" and "length" in table.meanings["cause_ns"]
    frame = polars.DataFrame(table)
    assert frame.height == table.num_rows == len(table)
    assert frame["cause_ns"].sum() == sum(arrow["cause_ns"].to_pylist())
    assert table.column_names == frame.columns
    # A table can be taken more than once, and lives on in what took it.
    again = pyarrow.table(table)
    del table, frame
    assert again.equals(arrow)


def test_a_run_is_explained() -> None:
    """Goal: a simulated run has its row and its waits. Method: a scenario of the library."""
    run = paceline.simulate("game-and-build", policy="eevdf-6.18")
    point = run.points.to_pydict()
    assert point["policy"] == ["eevdf-6.18"] and point["error"] == [None]
    assert run.spans.num_rows > 0 and run.inversions is not None and run.inversions.num_rows > 0


def test_threads_call_at_once(traces: Path) -> None:
    """Goal: calls of several threads of Python's do not mix, and a Python without the interpreter's lock stays without.
    Method: four threads, each with traces of its own, several times; where there can be no lock, whether there is one."""
    names = [FUTEX, "local-quota.ftrace.txt.gz", "local-spin.ftrace.txt.gz", "local-pathfinder-pi.ftrace.txt.gz"]
    alone = [pyarrow.table(paceline.diagnose(traces / name).causes) for name in names]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            found = pool.map(lambda name: pyarrow.table(paceline.diagnose(traces / name).causes), names)
            assert all(one.equals(other) for one, other in zip(found, alone))
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled()


def test_tables_are_shown_in_notebooks(traces: Path, polars: ModuleType) -> None:
    """Goal: a notebook shows a table's first rows, and no text of a trace is markup. Method: a long table, a short
    one, and a name with all special letters."""
    waits = paceline.diagnose(traces / FUTEX, waits=30).waits
    html = waits._repr_html_()
    assert html.count("<tr>") == 11 and f"10 of {len(waits)} rows" in html and "title=" in html
    row = polars.DataFrame(waits)["duration_ns"][0]
    assert f">{row}<" in html
    slices = "".join(
        f"  app-7 (    7) [000] ...1 {at}.000000: tracing_mark_write: {what}\n"
        for at, what in ((1, "B|7|<b>&\"frame"), (2, "E|7"))
    )
    found = paceline.diagnose(f"# tracer: nop\n#\n{slices}".encode(), slice="frame").waits
    shown = found._repr_html_()
    assert len(found) == 1 and "&lt;b&gt;&amp;&quot;frame" in shown and "<b>" not in shown and "rows" not in shown


def test_an_experiment_is_varied() -> None:
    """Goal: claims say in how many settings they hold, from a process whose program is Python. Method: the quickest
    experiment; the settings of each claim are rows."""
    done = paceline.experiment("yield", quick=True, sensitivity=True)
    assert done.report["sensitivity"] and len(done.varied) > 0
    claims = done.claims.to_pydict()
    varied = done.varied.to_pydict()
    for claim, settings, holds_in in zip(claims["id"], claims["settings"], claims["holds_in"]):
        held = [holds for one, holds in zip(varied["claim"], varied["holds"]) if one == claim]
        # As chosen is a setting, too.
        assert settings is None or settings >= len(held)
        assert holds_in is None or holds_in >= sum(held)
    assert set(varied["claim"]) <= set(claims["id"])


def test_an_experiment_has_claims() -> None:
    """Goal: an experiment's tables and claims are tables. Method: the quickest one."""
    done = paceline.experiment("yield", quick=True)
    claims = done.claims.to_pydict()
    assert "002-a" in claims["id"] and len(done.rows) > 1
    assert all(table.num_rows > 0 for table in done.rows.values())


def test_what_if_predicts(traces: Path) -> None:
    """Goal: a row for each wait, with a prediction or why there is none. Method: a change of the policy."""
    found = paceline.what_if(traces / FUTEX, "policy=eevdf-6.6", seeds=1)
    rows = found.waits.to_pydict()
    assert found.waits.num_rows > 0
    for refused, predicted in zip(rows["refused"], rows["predicted_ns"]):
        assert refused is not None or predicted is not None


def test_this_machine_has_cpus() -> None:
    """Goal: the machine's CPUs are rows. Method: their number."""
    machine = paceline.topology()
    assert machine.cpus.num_rows == machine.report["cpus"] >= 1
    assert machine.workers.num_rows == len(machine.report["workers"])


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: paceline.diagnose("none.txt"), "none.txt: cannot be read"),
        (lambda: paceline.diagnose(b"no trace"), "known formats"),
        (lambda: paceline.simulate("galaxy-s22-inversio"), "galaxy-s22-inversion"),
        (lambda: paceline.simulate("galaxy-s22-inversion", workers=3), "--workers"),
        (lambda: paceline.experiment("no-such"), "no-such"),
        (lambda: paceline.experiment("yield", where="there"), "give"),
        (lambda: paceline.sweep("galaxy-s22-inversion", policy="eevdf-6.5"), "eevdf-6.6"),
        (lambda: paceline.sweep("galaxy-s22-inversion", seed=[]), "empty"),
        (lambda: paceline.sweep("galaxy-s22-inversion", on="mars"), "mars"),
        (lambda: paceline.fleet("nowhere"), "nowhere"),
        (lambda: paceline.topology("nowhere"), "nowhere"),
    ],
)
def test_mistakes_are_one_line(call: object, part: str) -> None:
    """Goal: a mistake is an exception with the command's line. Method: one of each call."""
    assert callable(call)
    with pytest.raises(paceline.InputError) as raised:
        call()
    assert part in str(raised.value) and "\n" not in str(raised.value)
    assert isinstance(raised.value, paceline.Error)


def test_other_threads_run_meanwhile(traces: Path) -> None:
    """Goal: the interpreter's lock is free during a call. Method: another thread counts."""
    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    paceline.diagnose(traces / "ms-android12-emulator-a.pftrace.gz")
    over.set()
    thread.join()
    assert counted >= 3


INTERRUPTED = """
import sys, paceline
print("begun", flush=True)
try:
    paceline.sweep("oversubscribed", seed=range(10**6), out=sys.argv[1], progress=False)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    """Goal: Ctrl-C ends a call, and what was done is kept. Method: a signal in the middle of a sweep."""
    out = tmp_path / "runs.parquet"
    line = [sys.executable, "-c", INTERRUPTED, str(out)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        while not list(out.glob("points/*.parquet")):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait() == 0
    with paceline.DataSet(out, "points") as data_set:
        assert 0 < data_set.units == data_set["points"].num_rows < 10**6
