"""How long a newcomer takes from the wheels to a first posterior, in an empty folder.

    python -m benchmarks.newcomer [--dist dist]

Needs what `make release` built, and an index that pip may install other packages from. A fresh environment
gets `ldpkit[inference]` from the wheels; then README's first study in Python runs there as it stands.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the seconds of each step, and what the newcomer saw last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    dist = parser.parse_args(argv).dist.resolve()
    wheels = sorted(dist.glob("*.whl"))
    if len(wheels) != 2:
        parser.error(f"{dist} has {len(wheels)} wheels where two belong: run make release")
    with TemporaryDirectory() as name:
        folder = Path(name)
        python = folder / "venv" / "bin" / "python"
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--find-links", dist]
        steps = {
            "environment": [sys.executable, "-m", "venv", folder / "venv"],
            "install": [
                python,
                *install,
                f"{next(one for one in wheels if 'ldpkit' in one.name)}[inference]",
            ],
            "first posterior": [python, "-c", first_study()],
        }
        print(f"of which seconds: {', '.join(timed(steps, folder))}")


def timed(steps: dict[str, list[object]], folder: Path) -> list[str]:
    """Run one step after the other; each with its seconds, and all together."""
    took = {}
    for step, command in steps.items():
        began = time.perf_counter()
        subprocess.run([str(word) for word in command], cwd=folder, check=True)
        took[step] = time.perf_counter() - began
    return [f"{step} {seconds:.0f}" for step, seconds in {**took, "all": sum(took.values())}.items()]


def first_study() -> str:
    """README's first block of Python."""
    found = re.search(
        r"^```python\n(.+?)^```$", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert found
    return found[1]


if __name__ == "__main__":
    main()
