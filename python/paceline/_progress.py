"""A line on standard error for long work, if a terminal shows it."""

from __future__ import annotations

import sys
import time

PATIENCE = 2.0
"""Work that ends before this shows nothing."""


class Progress:
    """How many units are done, at what rate, and for how long it goes on."""

    def __init__(self, what: str, total: int, shown: bool | None) -> None:
        self.what = what
        self.total = total
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.began = time.monotonic()
        self.is_open = False

    def __call__(self, done: int, failed: int) -> None:
        """So many are done, and of those so many have failed."""
        elapsed = time.monotonic() - self.began
        if not self.shown or elapsed < PATIENCE or not done:
            return
        rate = done / elapsed
        left = (self.total - done) / rate
        wrong = f", {failed} failed" if failed else ""
        line = f"{done}/{self.total} {self.what}, {rate:.1f}/s, {left:.0f} s left{wrong}"
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        self.is_open = True

    def close(self) -> None:
        """Take the line away."""
        if self.is_open:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
