"""The figures that later changes are compared with: `python -m benchmarks.baseline [--coverage FILE]`.

Ratios within one run hold on a busy machine too. Milliseconds and seconds are those of a quiet machine, for
comparisons of two runs on it. FILE of --coverage is what `coverage json` writes after `make coverage`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import collector_bare
from benchmarks.inference_rows import fits, fresh
from benchmarks.sizes import Size, add_sizes

FILE = Path(__file__).with_name("baseline.json")


def branches(report: Path) -> dict[str, float]:
    """Read the share of lines and branches that tests ran, by package."""
    run, whole = Counter[str](), Counter[str]()
    for name, file in json.loads(report.read_text())["files"].items():
        package, summary = name.split("/")[0], file["summary"]
        run[package] += summary["covered_lines"] + summary["covered_branches"]
        whole[package] += summary["num_statements"] + summary["num_branches"]
    return {package: round(run[package] / whole[package], 4) for package in sorted(whole)}


def device_lines(size: Size) -> list[str]:
    """Run the benchmark of the device library in a process of its own, whose memory is small."""
    less = size.of(
        [], ["--starts", "5", "--rounds", "1"], ["--starts", "1", "--rounds", "1", "--only", "rr16"]
    )
    command = [sys.executable, "-m", "benchmarks.client", *less]
    done = subprocess.run(command, cwd=FILE.parents[1], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def figures(size: Size, coverage: Path | None) -> dict[str, Any]:
    """Measure everything, one thing after the other."""
    put = collector_bare.ratios(*size.of((collector_bare.TURNS, collector_bare.REPORTS), (3, 100), (1, 20)))
    found: dict[str, Any] = {
        "CPU of an upload, as a ratio to a bare Flask route": {way: round(r, 3) for way, r in put.items()},
        "device library": device_lines(size),
    }
    if size is not Size.TINY:
        rows = [*fits.whole_fits(size), *fresh.fresh_processes(size)]
        found["fits"] = {row.what: row.measured for row in rows}
    if coverage is not None:
        found["share of lines and branches that fast tests run"] = branches(coverage)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--coverage", type=Path)
    add_sizes(parser)
    given = parser.parse_args(argv)
    found = figures(given.size, given.coverage)
    given.out.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    print(f"{given.out}: {', '.join(found)}")


if __name__ == "__main__":
    main()
