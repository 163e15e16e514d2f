"""The command ``paceline``: ``python -m paceline``, and the script that pip installs."""

from __future__ import annotations

import signal
import sys

from . import _native


def main() -> None:
    """Run the command line of this process."""
    # The command is a program of its own: Ctrl-C ends it, as does a reader that has gone away.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.main(["paceline", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
