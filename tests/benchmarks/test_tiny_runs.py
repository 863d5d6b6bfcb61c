"""Every program of `benchmarks` runs to its end in its smallest size, and prints what it is there for.

Most of the time goes into programs that JAX compiles, one for each model that is fitted. So simulated
posteriors have stand-ins here, as has what else fits where one fit of several alike is made: all else runs.
"""

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.kit.programs import need

ROOT = Path(__file__).parents[2]
# Of the census records.
NUMBERS = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
KINDS = ("workclass", "marital_status", "occupation", "relationship", "race", "sex")


@dataclass(frozen=True)
class Run:
    """Arguments of the least that runs a program, and a regular expression of what it prints.

    needs: programs and packages. reads: whether it reads data, which are then made.
    stand_ins: {name within benchmarks: what is called}.
    """

    arguments: str
    prints: str = r"\d"
    needs: tuple[str, ...] = ()
    reads: bool = False
    stand_ins: Mapping[str, object] = field(default_factory=dict)


class SomeDraws(dict):
    """What `posterior_draws` would give, out of the blue."""

    def __init__(self, models, seed, draws, thin=1):
        del thin
        self.shape, self.random = (len(models), draws), np.random.default_rng(seed)

    def __missing__(self, name):
        return self.setdefault(name, self.random.random((*self.shape, 2) if name == "theta" else self.shape))


def some_lines(_model, _epsilon, parts, *_more):
    return [np.ones(1 + part.x.shape[1]) for part in parts]


NONE_LOST = r"× {}: [1-9]\d+ acknowledged, [1-9]\d+ exported, 0 lost, "
RUNS = {
    # test_parts.py has a formula.
    "analyses": (Run("--studies 2 --case crossing", "ranks p = "),),
    "choice_forms": (Run("--reports 200 --choices 8"),),
    "chunked_likelihood": (Run("--n 200 --size 8"),),
    "client": (Run("--starts 1 rr16 unary_many", "perturb_many"),),
    "collector": (Run("--share 0.01", "Flask view: "),),
    "collector_faults": (
        Run("--kills 0 --powers 2 --restarts 0 --failovers 0 --reports 1000", NONE_LOST.format(2), ("gcc",)),
        Run(
            "--kills 0 --powers 0 --restarts 0 --failovers 1 --on-postgresql 500",
            NONE_LOST.format(1),
            ("postgres",),
        ),
    ),
    "collector_rows": (Run("--rows 100 --batches 1", needs=("postgres",)),),
    "collector_scale": (Run("--reports 50 --batches 0 --workers 2", "2 workers", ("postgres",)),),
    "dca": (
        Run(
            "--tiny --data red_wine",
            "ours: best",
            reads=True,
            stand_ins={
                "dca.experiment.marginal_lines": lambda every: [np.zeros(one.features) for one in every]
            },
        ),
    ),
    "ddplr": (
        Run(
            "--tiny --table 1 --table 2 --runs 2 --data PowerPlant --holders 1 "
            "--methods mcmc_fixeds bayes_fixeds_fast ada_ssp marginal",
            r"in \d of 1 cells.* right constants",
            reads=True,
        ),
    ),
    "dpblr": (
        Run("--tiny --noise gaussian --out {folder} --methods non_private gibbs_ss_noisy bayes_fixeds_fast"),
        Run("--tiny --methods marginal --out {folder}", "by_records_laplace.png"),
    ),
    "engines": (Run("--reports 1024"),),
    "false_reports": (Run("--runs 2 --only '6 choices, oue, ε = 1' 'a mean, laplace, ε = 1'"),),
    "nonparametric": (Run("--only normal --epsilon 4 --people 200 --studies 2 --draws 100"),),
    "inference": (Run("--tiny", stand_ins={"inference_rows.fresh.seconds_of": lambda *_given: 1.0}),),
    "ldpbi": (
        Run("3 10 --tiny --out {folder}", r"figure_3.png.*figure_10.png"),
        Run(
            "1 2 4 5 11 --tiny --out {folder}",
            r"figure_1.png.*figure_2.png.*figure_11.png",
            reads=True,
            stand_ins={
                "ldpbi.figure_2._draws": lambda *_given: np.full((50, 4), 0.25),
                "ldpbi.figure_4.posterior_lines": some_lines,
                "ldpbi.figure_5.posterior_lines": some_lines,
            },
        ),
    ),
    "published_survey": (Run("", "log-likelihood, 60 people", reads=True),),
    "sampled_products": (Run("--repetitions 1 --people 2000"),),
    "secure_sum": (Run("--d 10 --clients 100", "one seed node"),),
    "shuffling": (Run("--people 1000"),),
}


def test_every_program_of_benchmarks_is_run():
    folder = ROOT / "benchmarks"
    programs = {
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__main__")
        for path in folder.rglob("*.py")
        if path.name == "__main__.py" or '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    assert programs == {*RUNS}


@pytest.fixture(autouse=True)
def nothing_outside(monkeypatch, tmp_path):
    """No program finds data but where a test makes them."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("LDPKIT_DATA", str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "run"),
    [
        pytest.param(module, run, id=f"{module}-{place}")
        for module, runs in RUNS.items()
        for place, run in enumerate(runs)
    ],
)
def test_each_program_runs_and_prints_findings(module, run, tmp_path, monkeypatch, capfd):
    need(*run.needs)
    if run.reads:
        make_tables(tmp_path)
    without_simulated_posteriors(monkeypatch, module)
    for name, stand_in in run.stand_ins.items():
        monkeypatch.setattr(f"benchmarks.{name}", stand_in)
    code = None
    try:
        program_of(module).main(shlex.split(run.arguments.format(folder=tmp_path / "out")))
    except SystemExit as end:
        code = end.code
    said, problems = capfd.readouterr()
    # Code 1 is a missed target, which a tiny run may miss.
    assert code in (None, 0, 1), problems
    assert re.search(run.prints, said, re.DOTALL), said + problems


def program_of(module: str):
    is_package = (ROOT / "benchmarks" / module).is_dir()
    return import_module(f"benchmarks.{module}{'.__main__' * is_package}")


def without_simulated_posteriors(monkeypatch, module: str) -> None:
    """Give each module of the benchmarks that draws them the stand-in."""
    program_of(module)
    # Figures are imported when they are asked for.
    for path in (ROOT / "benchmarks" / module).glob("figure_*.py"):
        import_module(f"benchmarks.{module}.{path.stem}")
    for name in [name for name in sys.modules if name.startswith("benchmarks.")]:
        if hasattr(sys.modules[name], "posterior_draws"):
            monkeypatch.setattr(sys.modules[name], "posterior_draws", SomeDraws)


def make_tables(folder: Path) -> None:
    """The papers' files with few rows, drawn at random: their columns, and nothing else of them."""

    def write(name, columns):
        pd.DataFrame(columns).to_csv(folder / f"{name}.csv.gz", index=False)

    random = np.random.default_rng(1)
    for colour in ("red", "white"):
        measured = random.normal(size=(60, 4))
        quality = np.clip(np.rint(6 + measured[:, 0] + random.normal(size=60) / 2), 3, 9)
        columns = {f"property_{place}": column for place, column in enumerate(measured.T)}
        write(f"wine_{colour}", {**columns, "quality": quality})
    numbers = {name: random.integers(20, 60, 60) for name in NUMBERS}
    kinds = {name: random.choice(["a", "b"], 60) for name in KINDS}
    rich = np.where(numbers["age"] + random.normal(0, 10, 60) > 40, ">50K", "<=50K")
    split = random.choice(["train", "test"], 60)
    write("adult", {**numbers, **kinds, "income": rich, "split": split})
    write("kosarak_5_25_item_counts", {"item": np.arange(8), "count": 800 // np.arange(1, 9)})
    heat, vacuum, noise = random.normal(size=(3, 100))
    write("power_plant", {"AT": heat, "V": vacuum, "PE": heat - vacuum + noise})
    (folder / "rr").mkdir()
    names = ("age", "asset.index", "married", "education", "female")
    people = {f"cov.{name}": random.integers(18, 60, 60) for name in names}
    pd.DataFrame({"rr.q1": random.integers(0, 2, 60), **people}).to_csv(
        folder / "rr" / "nigeria.csv", index=False
    )
