"""What the device library costs: `python -m benchmarks.client [--peers PYTHON] [--only TASK …] [--rounds 3]`.

CPU time only, each task in a process of its own, ldpkit and its peers in turns: compare within one run.
PYTHON is an interpreter that has opendp, diffprivlib, pure-ldp or multi-freq-ldpy; what it lacks is said.
diffprivlib 0.6.6 needs scikit-learn below 1.6, pure-ldp 1.2.0 needs statsmodels.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Of the folder of the device library, where a wheel of it is built.
NOT_BUILT = ("__pycache__", "*.egg-info", "build")
BARE = "pass"
IMPORT = "import ldp_client"
ONE_REPORT = """
from ldp_client import Study, mechanism_for
mechanism = {"name": "randomized_response", "epsilon": "1"}
question = {"id": "q", "ask": "choice", "choices": {"count": 16}, "mechanism": mechanism}
question["model"] = {"name": "multinomial"}
document = {"format": "ldpkit.study/1", "id": "s", "version": 1, "title": "s", "questions": [question]}
mechanism_for(Study(document).questions[0]).perturb(3)
"""
OPENDP_REPORT = """
import opendp.prelude as dp
dp.enable_features("contrib")
dp.m.make_randomized_response([str(place) for place in range(16)], 0.15)("3")
"""
# task: what it is, the target of the CPU time in µs, the peers and how many times faster it should be.
TASKS = {
    "rr16": ("k-ary randomized response, 16 choices", None, {}),
    "unary": ("OUE, 1024 choices", 22, {"opendp": 25}),
    "laplace": ("Laplace number", 4, {"opendp": 25}),
    "gaussian": ("Gaussian statistics, 9 features", 110, {"opendp": 8}),
    "signs": ("signs of sampled products, 10 features", 6, {}),
    "unary_many": ("perturb_many, OUE, 1024 choices", 1e6 / 150_000, {"multi-freq-ldpy": 3}),
    "gaussian_many": ("perturb_many, Gaussian statistics", 1e6 / 50_000, {}),
}
PEERS = {
    "opendp": "opendp",
    "diffprivlib": "diffprivlib.mechanisms",
    "pure-ldp": "pure_ldp.frequency_oracles",
    "multi-freq-ldpy": "multi_freq_ldpy",
}


def missing(python: str) -> list[str]:
    """Which peers that interpreter cannot import, and why."""
    lines = []
    for name, module in PEERS.items():
        command = [python, "-c", f"import {module}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines.append(f"{name} is left out: {done.stderr.strip().splitlines()[-1]}")
    return lines


def start_cost(python: str, code: str, isolated: bool) -> tuple[float, float]:
    """CPU milliseconds and resident MiB of one new process that runs this code."""
    flags = ["-I", "-S"] if isolated else []
    if isolated:
        code = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{code}"
    process = subprocess.Popen([python, *flags, "-c", code], stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise LookupError(python)
    return 1000 * (usage.ru_utime + usage.ru_stime), usage.ru_maxrss / 1024


def starts(peers: str | None, times: int) -> list[str]:
    """Import, and a process that makes one report, over a bare interpreter; medians of paired starts."""
    bare, imported, reported, memory, opendp = [], [], [], [], []
    for _ in range(times):
        bare.append(start_cost(sys.executable, BARE, True)[0])
        imported.append(start_cost(sys.executable, IMPORT, True)[0])
        cost, size = start_cost(sys.executable, ONE_REPORT, True)
        reported.append(cost)
        memory.append(size)
        if peers:
            try:
                opendp.append(start_cost(peers, OPENDP_REPORT, False)[0])
            except LookupError:
                peers = None
    over = statistics.median([after - before for after, before in zip(imported, bare)])
    one = statistics.median(reported)
    base, size = statistics.median(bare), statistics.median(memory)
    lines = [
        f"import ldp_client: {over:.1f} ms over a bare interpreter's {base:.1f} (target 15)",
        f"process with one report, 16 choices: {one:.1f} ms (target 25), {size:.1f} MiB (target 20)",
    ]
    if opendp:
        theirs = statistics.median(opendp)
        lines.append(f"  opendp: {theirs:.0f} ms, {theirs / one:.1f} × (target 8)")
    return lines


def measured(python: str, module: str, task: str) -> float | None:
    """CPU microseconds of one report, in a new process; None where the interpreter cannot."""
    command = [python, "-m", f"benchmarks.client_tasks.{module}", task]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    answer: float | None = json.loads(done.stdout) if done.returncode == 0 else None
    return answer


def compare(task: str, peers: str | None, rounds: int) -> list[str]:
    """One task in turns with every peer that has it: medians of times and of ratios within a round."""
    what, target, wanted = TASKS[task]
    own: list[float] = []
    theirs: dict[str, list[float]] = {}
    for _ in range(rounds):
        mine = measured(sys.executable, "ours", task)
        assert mine is not None, f"{task} cannot run here"
        own.append(mine)
        for peer in PEERS if peers else ():
            cost = measured(str(peers), "peers", f"{peer}:{task}")
            if cost is not None:
                theirs.setdefault(peer, []).append(cost / mine)
    cost = statistics.median(own)
    limit = f" (target {target:.1f})" if target else ""
    lines = [f"{what}: {cost:.2f} µs{limit}, {1e6 / cost:,.0f} reports per CPU-second"]
    for peer, ratios in theirs.items():
        goal = f" (target {wanted[peer]})" if peer in wanted else ""
        ratio = statistics.median(ratios)
        lines.append(f"  {peer}: {ratio * cost:.1f} µs, {ratio:.1f} ×{goal}")
    return lines


def wheel() -> list[str]:
    """The size of the device library's wheel as it is published, and of what is in it."""
    with tempfile.TemporaryDirectory() as folder:
        # A build leaves folders behind where it is done.
        sources = Path(folder) / "ldp_client"
        shutil.copytree(ROOT / "ldp_client", sources, ignore=shutil.ignore_patterns(*NOT_BUILT))
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
        subprocess.run([*command, "-w", folder, str(sources)], check=True, capture_output=True)
        built = next(Path(folder).glob("*.whl"))
        sizes: dict[str, int] = {}
        with zipfile.ZipFile(built) as archive:
            for entry in archive.infolist():
                package = str(Path(entry.filename).parent)
                sizes[package] = sizes.get(package, 0) + entry.compress_size
        parts = ", ".join([f"{name} {size / 1000:.0f}" for name, size in sorted(sizes.items())])
        return [f"device library's wheel: {built.stat().st_size / 1000:.0f} kB (target 200): {parts}"]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has the peers")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    parser.add_argument("--rounds", type=int, default=3, help="of each task")
    parser.add_argument("--starts", type=int, default=15, help="of each process whose start is measured")
    given = parser.parse_args(argv)
    peers = given.peers
    if peers:
        print("\n".join(missing(peers)))
    print("\n".join([*wheel(), *starts(peers, given.starts)]), flush=True)
    for task in given.only:
        print("\n".join(compare(task, peers, given.rounds)), flush=True)


if __name__ == "__main__":
    main()
