"""What the tests share."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT / "testdata" / "traces"


@pytest.fixture(scope="session")
def duckdb() -> ModuleType:
    """The package, which free-threaded Pythons cannot have yet. Everywhere else xtask installs it."""
    return pytest.importorskip("duckdb")


@pytest.fixture(scope="session")
def polars() -> ModuleType:
    """As duckdb."""
    return pytest.importorskip("polars")


@pytest.fixture(scope="session")
def traces() -> Path:
    """The project's traces."""
    return TRACES


def shifted(text: str, lines: range, by: int) -> str:
    """A part of a trace in text, so many microseconds later."""
    kept = text.splitlines(keepends=True)
    head = [line for line in kept if line.startswith("#")]
    body = [line for line in kept if not line.startswith("#")][lines.start : lines.stop]

    def later(match: re.Match[str]) -> str:
        micros = int(match[1]) * 1_000_000 + int(match[2]) + by
        return f"{micros // 1_000_000}.{micros % 1_000_000:06}:"

    return "".join(head + [re.sub(r"\b(\d+)\.(\d{6}):", later, line, count=1) for line in body])


@pytest.fixture(scope="session")
def made_fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet of 300 traces, made from three by cutting and shifting, and one file that is no trace."""
    folder = tmp_path_factory.mktemp("fleet") / "traces"
    names = ["local-futex.ftrace.txt.gz", "local-spin.ftrace.txt.gz", "local-quota.ftrace.txt.gz"]
    texts = [gzip.decompress((TRACES / name).read_bytes()).decode() for name in names]
    for at in range(300):
        text = texts[at % 3]
        begin = at * 37 % 2000
        part = shifted(text, range(begin, begin + 2500), 1000 * at)
        to = folder / ("phone" if at % 2 else "tablet") / f"{at // 150 + 1}.0" / f"{at:03}.txt"
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(part)
    (folder / "phone" / "1.0" / "broken.txt").write_text("no trace")
    return folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test finds anything because of the folder that it runs in."""
    monkeypatch.chdir(tmp_path)
    assert not os.listdir(".")
