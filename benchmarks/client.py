"""What the device library costs: `python -m benchmarks.client [TASK …] [--starts 15]`.

CPU time only, each start in a process of its own. Rates move with the machine: compare within one run.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.running import cost_of
from ldp_client import Mechanism, mechanism_for
from ldp_client.bulk import perturb_many
from schemas import Study

ROOT = Path(__file__).parents[1]
# Of the folder of the device library, where a wheel of it is built.
NOT_BUILT = ("__pycache__", "*.egg-info", "build")
BARE = "pass"
IMPORT = "from ldp_client import Device"
ONE_REPORT = """
from ldp_client import Study, mechanism_for
mechanism = {"name": "randomized_response", "epsilon": "1"}
question = {"id": "q", "ask": "choice", "choices": {"count": 16}, "mechanism": mechanism}
question["model"] = {"name": "multinomial"}
document = {"format": "ldpkit.study/1", "id": "s", "version": 1, "title": "s", "questions": [question]}
mechanism_for(Study(document).questions[0]).perturb(3)
"""
MANY = 20_000
# CPU seconds for which a task is repeated.
ENOUGH = 0.05
FIELDS = [{"id": f"x{place}", "bounds": ["-1", "1"]} for place in range(10)]
UNARY = {"ask": "choice", "choices": {"count": 1024}, "mechanism": {"name": "oue", "epsilon": "1"}}
NUMBER = {"ask": "number", "bounds": ["0", "1"], "mechanism": {"name": "laplace", "epsilon": "1"}}
ONE_OF_16 = {
    "ask": "choice",
    "choices": {"count": 16},
    "mechanism": {"name": "randomized_response", "epsilon": "1"},
}
# v has 11 entries and vvᵀ 66 numbers, of which the constant is known: 65 are released.
RECORD = {
    "ask": "record",
    "features": FIELDS[:9],
    "norm": "1",
    "response": {"id": "y", "bounds": ["-1", "1"]},
    "mechanism": {"name": "gaussian_statistics", "epsilon": "1", "delta": "1e-6"},
}
SIGNS = {
    "ask": "record",
    "features": FIELDS,
    "response": {"id": "y", "bounds": ["-1", "1"]},
    "mechanism": {"name": "sampled_products", "epsilon": "1", "weights": {"response": 4}},
}
MODELS = {"choice": "multinomial", "number": "normal", "record": "linear_regression"}
NINE = dict.fromkeys([*(field["id"] for field in FIELDS[:9]), "y"], 0.1)
# task: what it is, the target in µs, the question, and the answer of one report or the answers of many.
TASKS: dict[str, tuple[str, float | None, dict[str, Any], Any]] = {
    "rr16": ("k-ary randomized response, 16 choices", None, ONE_OF_16, 3),
    "unary": ("OUE, 1024 choices", 22, UNARY, 3),
    "laplace": ("Laplace number", 4, NUMBER, 0.3),
    "gaussian": ("Gaussian statistics, 9 features", 110, RECORD, NINE),
    "signs": ("signs of sampled products, 10 features", 6, SIGNS, {**NINE, "x9": 0.1}),
    "unary_many": ("perturb_many, OUE, 1024 choices", 1e6 / 150_000, UNARY, np.arange(MANY) % 1024),
    "gaussian_many": (
        "perturb_many, Gaussian statistics",
        1e6 / 50_000,
        RECORD,
        dict.fromkeys(NINE, np.linspace(-1, 1, MANY)),
    ),
}


def mechanism_of(question: dict[str, Any]) -> Mechanism:
    """The mechanism of a question."""
    whole = {"id": "q", "model": {"name": MODELS[question["ask"]]}, **question}
    document = {"format": "ldpkit.study/1", "id": "s", "version": 1, "title": "s", "questions": [whole]}
    return mechanism_for(Study(document).questions[0])


def line_of(task: str) -> str:
    """What a report of a task costs."""
    what, target, question, answer = TASKS[task]
    mechanism, count = mechanism_of(question), 1
    call: Callable[[], object] = partial(mechanism.perturb, answer)
    if task.endswith("_many"):
        call, count = partial(perturb_many, mechanism, answer), MANY
    call()
    cost = cost_of(call, enough=ENOUGH).cpu / count * 1e6
    limit = f" (target {target:.1f})" if target else ""
    return f"{what}: {cost:.2f} µs{limit}, {1e6 / cost:,.0f} reports per CPU-second"


def start_cost(code: str) -> tuple[float, float]:
    """CPU milliseconds and resident MiB of one new process that runs this code without site-packages."""
    path = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", path + code])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return 1000 * (usage.ru_utime + usage.ru_stime), usage.ru_maxrss / 1024


def starts(times: int) -> list[str]:
    """Import, and a process that makes one report, over a bare interpreter; medians of starts in turns."""
    turns = [[start_cost(code) for code in (BARE, IMPORT, ONE_REPORT)] for _ in range(times)]
    bare = statistics.median([turn[0][0] for turn in turns])
    over = statistics.median([turn[1][0] - turn[0][0] for turn in turns])
    one, size = (statistics.median([turn[2][part] for turn in turns]) for part in range(2))
    return [
        f"importing Device: {over:.1f} ms over a bare interpreter's {bare:.1f} (target 15)",
        f"process with one report, 16 choices: {one:.1f} ms (target 25), {size:.1f} MiB (target 20)",
    ]


def wheel() -> str:
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
        return f"device library's wheel: {built.stat().st_size / 1000:.0f} kB (target 200): {parts}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--starts", type=int, default=15, help="of each process whose start is measured")
    given = parser.parse_args(argv)
    print("\n".join([wheel(), *starts(given.starts)]), flush=True)
    for task in given.tasks or TASKS:
        print(line_of(task), flush=True)


if __name__ == "__main__":
    main()
