"""Sweeps and fleets on a cluster of two nodes, of which one is killed in the middle."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import paceline

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without CPUs of its own for tasks, and two nodes."""
    made = cluster_utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    made.nodes = [made.add_node(num_cpus=1) for _ in range(2)]
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def bytes_of(data_set: paceline.DataSet) -> dict[str, bytes]:
    """All tables as Arrow's bytes, in the order of keys."""
    found = {}
    for name in data_set:
        # Columns in one piece, and nothing in places without a value.
        table = pyarrow.table(data_set[name])
        columns = [pyarrow.array(column.to_pylist(), column.type) for column in table.columns]
        table = pyarrow.Table.from_arrays(columns, schema=table.schema)
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        found[name] = sink.getvalue().to_pybytes()
    return found


class Killer(threading.Thread):
    """Kills a node once something is written."""

    def __init__(self, cluster: Any, out: Path, leading: str) -> None:
        super().__init__()
        self.cluster, self.out, self.leading = cluster, out, leading
        self.before = 0
        self.start()

    def files(self) -> int:
        """How many parts are written."""
        return len(list(self.out.glob(f"{self.leading}/*.parquet")))

    def run(self) -> None:
        """Wait, and kill."""
        while not self.files():
            time.sleep(0.01)
        self.cluster.remove_node(self.cluster.nodes.pop(), allow_graceful=False)
        self.before = self.files()

    def assert_was_in_the_middle(self) -> None:
        """The run went on after the node was gone."""
        self.join()
        assert 0 < self.before < self.files()


def test_a_sweep_survives_a_node(cluster: Any, tmp_path: Path) -> None:
    """Goal: nothing is lost and nothing is there twice, byte for byte. Method: 2000 points, one node killed."""
    given: dict[str, Any] = {"policy": ["eevdf-6.6", "eevdf-6.18"], "seed": range(1000), "progress": False}
    out, folder = tmp_path / "runs", scenario(tmp_path)
    killer = Killer(cluster, out, "points")
    with paceline.sweep("threads.toml", on="ray", out=out, folder=folder, **given) as there:
        killer.assert_was_in_the_middle()
        assert there.units == there["points"].num_rows == 2000 and not there.failures
        with paceline.sweep("threads.toml", folder=folder, **given) as here:
            assert bytes_of(there) == bytes_of(here)


def scenario(folder: Path) -> Path:
    """A folder with a scenario in which times are drawn, so that no two seeds are alike."""
    text = """
        about = "three threads on two CPUs"
        machine = "vm-2"
        policy = "eevdf-6.18"
        until = "300 ms"

        [[thread]]
        name = "worker"
        count = 3
        repeat = "forever"
        phases = [{ begin = "turn" }, { work = ["1 ms", "3 ms"] }, { end = "turn" }, { sleep = ["1 ms", "2 ms"] }]
    """
    (folder / "threads.toml").write_text(text)
    return folder


def test_a_fleet_survives_a_node(cluster: Any, made_fleet: Path, tmp_path: Path) -> None:
    """Goal: the same of traces. Method: 300 traces and a broken file, one node killed."""
    out = tmp_path / "fleet"
    killer = Killer(cluster, out, "traces")
    with paceline.fleet(made_fleet, labels="{device}/{build}/", on="ray", out=out, progress=False) as there:
        killer.assert_was_in_the_middle()
        assert there.units == 301 and len(there.failures) == 1
        with paceline.fleet(made_fleet, labels="{device}/{build}/", progress=False) as here:
            assert bytes_of(there) == bytes_of(here)


def test_errors_of_tasks_are_ours(cluster: Any, tmp_path: Path) -> None:
    """Goal: a difference between machines is told. Method: the scenario is another one after the plan."""
    plan = paceline._native.SweepPlan('{"scenario": "threads.toml"}', scenario(tmp_path))
    keys = plan.keys()
    with pytest.raises(paceline.FailedError, match="differ between"):
        plan.part([0], [keys[0] + "x"])
