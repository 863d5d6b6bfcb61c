"""The command in a process of its own: the script `ldpkit`, or `python -m ldpkit` without it on the path."""

import gc
import sys

from ldpkit.cli import main


def run() -> None:
    """Run the command and end the process."""
    # Nearly all objects live to the end of a command. Python's frequent search for garbage, and one at the
    # end, took a sixth of a fit.
    gc.set_threshold(50_000, 20, 20)
    code = main()
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    run()
