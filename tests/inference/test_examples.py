"""Examples and docs/adding-a-model.md run, and find what was simulated or what the R package RRTCS prints."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

from inference.analyses.design_file import read_design
from ldpkit.cli import main
from tests import studies
from tests.kit.programs import need

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def example_of(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_pooled_regions_are_near_the_truth_and_nearer_than_the_noise(monkeypatch):
    example = example_of("partial_pooling")
    # So few that most of what is known of their region comes from the others.
    monkeypatch.setattr(example, "LAST_PEOPLE", 25)
    monkeypatch.setattr(example, "EDGES", np.linspace(0.0, 1.0, 17))
    means = np.array([0.42, 0.55, 0.48, 0.61, 0.50, 0.45])
    with jax.enable_x64(True):
        drawn = example.fit(example.simulate(means, sd=0.15, seed=1), seed=2, draws=60)["mean"]
    assert np.all(np.abs(drawn.mean(0) - means) < 5 * drawn.std(0))
    # Alone, a region's mean is known to no better than its clipped reports' spread over the root of n.
    assert drawn.std(0)[5] < 0.7 * example.LAST_NOISE_SD / 5


@pytest.mark.slow
def test_a_panel_spends_once_however_many_weeks(capsys, monkeypatch):
    example = example_of("weekly_panel")
    monkeypatch.setattr(example, "PEOPLE", 20)
    assert example.main() == 0
    assert "left of each person's budget of 2, after 4 weeks: 0.00" in capsys.readouterr().out


@pytest.mark.slow
def test_telemetry_example_finds_crashing_features(capsys):
    example = example_of("telemetry")
    assert example.main() == 0
    first, *found = capsys.readouterr().out.splitlines()
    assert first == "100,000 devices find features of 0.34% and more"
    named = [int(line.split(":")[0].removeprefix("feature")) for line in found]
    # The last one of these has 1.6 %; of the others one is named once in twenty times, three hardly ever.
    assert named[:5] == list(example.CRASHING[:5])
    assert set(example.CRASHING) <= set(named)
    assert len(named) < len(example.CRASHING) + 3


def cells_of(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def errors(notebook):
    return [one for cell in cells_of(notebook) for one in cell["outputs"] if one["output_type"] == "error"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_as_they_ran_from_top_to_bottom(path):
    notebook = json.loads(path.read_text("utf-8"))
    cells = cells_of(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert any(cell["outputs"] for cell in cells)
    assert not errors(notebook)
    # What was printed is of no machine: a folder of somebody's would be.
    assert not re.search(r"(?<![\w./:])/(home|root|tmp|usr|work|var|Users)/", path.read_text("utf-8"))


@pytest.mark.slow
def test_notebooks_run(tmp_path):
    """They run without an error, on made data. One kernel loads modules once, and forgets names between."""
    need("nbclient")
    import nbformat
    from nbclient import NotebookClient

    every = nbformat.v4.new_notebook()
    for path in NOTEBOOKS:
        (tmp_path / path.stem).mkdir()
        every.cells += [nbformat.v4.new_code_cell(f"%reset -f\n%cd {tmp_path / path.stem}")]
        every.cells += cells_of(nbformat.read(path, 4))
    own = {"PYTHONPATH": str(ROOT), "LDPKIT_DATA": str(tmp_path)}
    # Where the commands are.
    own["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    client = NotebookClient(every, timeout=300, kernel_name="python3")
    client.execute(env={**os.environ, **own})
    assert len(NOTEBOOKS) == 4
    assert not errors(every)


def run_r(script, *arguments):
    command = ["Rscript", str(ROOT / "examples" / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.needs("R")
def test_r_script_prints_quantiles_and_ends_by_the_verdict(tmp_path):
    """Of the reports in an export some answer another question."""
    study, answers, reports, out = (tmp_path / name for name in ("s.json", "a.csv", "r.ndjson", "fit"))
    study.write_text(json.dumps(studies.document(studies.YES_NO)))
    answers.write_text("ever\n" + "yes\nno\n" * 200)
    assert main(["perturb", str(study), str(answers), "--out", str(reports)]) == 0
    call = ["fit", str(study), str(reports), "--out", str(out), "--method", "gaussian_approx"]
    code = main(call)
    (tmp_path / "reports.csv").write_text("report_id,unbiased.ever\na,0.5\nb,\nc,1.5\n")
    done = run_r("read_results.R", out, tmp_path / "reports.csv")
    assert done.returncode == code, done.stderr
    assert "unbiased.ever: mean 1, standard error 0.5\n" in done.stdout
    (numbers,) = re.findall(r"^p\s+([\d. ]+)$", done.stdout, re.MULTILINE)
    row = json.loads((out / "posterior.json").read_text())["questions"]["ever"]["parameters"]["p"]
    quantiles = [row[name] for name in ("q05", "q50", "q95")]
    assert [float(one) for one in numbers.split()] == pytest.approx(quantiles, abs=1e-3)


# Surveys as counts, and the results of the R package RRTCS for them; it prints seven digits.
SURVEYS = json.loads((ROOT / "tests" / "golden" / "rrtcs.json").read_text())
PRINTED = 5e-7
FIGURE = re.compile(
    r"(total|share) of \w+ = yes: (\S+), standard error (\S+), 90 % interval \S+ to \S+; "
    r"variance (\S+) in the sample \+ (\S+) of noise that it lacks"
)


def figures(folder, people, question, named):
    """Return {total or share: estimate, its error, variance in the sample and of noise}, as printed."""
    document = {"format": "ldpkit.design/1", "columns": {question: named}}
    matrix = read_design(json.dumps(document)).columns[0].parts[0].channel.chances[0, 0]
    matrix = [[str(Fraction(one).limit_denominator(10**6)) for one in row] for row in matrix]
    document["columns"] = {question: {"answers": ["no", "yes"], "reports": ["no", "yes"], "matrix": matrix}}
    (folder / "design.json").write_text(json.dumps(document))
    people.to_csv(folder / "table.csv", index=False)
    done = run_r("sample_design.R", folder / "table.csv", question, folder / "design.json")
    assert done.returncode == 0, done.stderr
    lines = filter(None, map(FIGURE.fullmatch, done.stdout.splitlines()))
    return {line[1]: [float(number) for number in line.groups()[1:]] for line in lines}


@pytest.mark.slow
@pytest.mark.needs("R")
@pytest.mark.parametrize("question", ["copied", "drug"])
def test_script_repeats_printed_shares_of_simple_random_sample(tmp_path, question):
    survey = SURVEYS["students"]
    expected = survey["questions"][question]
    drawn = survey["people"] / survey["population"]
    reports = ["yes"] * expected["yes"] + ["no"] * (survey["people"] - expected["yes"])
    people = pd.DataFrame({question: reports, "weight": 1 / drawn, "drawn": drawn})
    design = {"design": "unrelated", "p": survey["p"], "prevalence": expected["prevalence"]}
    estimate, error, *_ = figures(tmp_path, people, question, design)["share"]
    assert [estimate, error**2] == pytest.approx([expected["share"], expected["variance"]], rel=PRINTED)


@pytest.mark.slow
@pytest.mark.needs("R")
@pytest.mark.parametrize("name", ["infertility", "infidelity"], ids=["unequal weights", "clusters"])
def test_script_repeats_total_and_jackknife_of_strata(tmp_path, name):
    survey = SURVEYS[name]
    counts = pd.DataFrame(survey["rows"], columns=survey["columns"])
    own = [column for column in counts if column not in ("no", "yes")]
    people = counts.melt(own, ["no", "yes"], "report", "people")
    people = people.loc[people.index.repeat(people["people"])].drop(columns="people")
    people["weight"] = 1 / people["inclusion"]
    # RRTCS takes a stratum's mean probability of inclusion for the share that was drawn.
    people["drawn"] = people.groupby("stratum")["inclusion"].transform("mean")
    total, _, sampling, noise = figures(tmp_path, people, "report", survey["design"])["total"]
    assert [total, sampling] == pytest.approx([survey["total"], survey["jackknife"]], rel=PRINTED)
    if "noise" in survey:
        assert noise == pytest.approx(survey["noise"], rel=PRINTED)


BLOCK = re.compile(r"```python\n# ([^\n]*)\n(.*?)```", re.DOTALL)
EDIT = re.compile(r'(\S+), below "(.*)"')
FITTED = """
from dataclasses import replace
import numpy as np
from inference.design.calibration import prior_truths
from inference.design.simulation import simulate
from inference.fitting import fit_question
from inference.models import model_for
from ldp_client import mechanism_for
from schemas import Study

question = {
    "id": "flood", "ask": "number", "bounds": ["0", "10"],
    "mechanism": {"name": "laplace", "epsilon": "8"},
    "model": {"name": "logistic", "prior": {"loc": {"distribution": "normal", "loc": "4", "scale": "1"}}},
}
head = {"format": "ldpkit.study/1", "id": "survey", "version": 1, "title": "A survey"}
study = Study({**head, "questions": [question]})
question = study.questions[0]
truth = replace(prior_truths(question, 1, seed=2)[0], parameters={"loc": 4.0, "scale": 1.0})
summary = simulate(question, mechanism_for(question), truth, 5000, np.random.default_rng(1))
model = model_for(question, summary)
found = fit_question(study, question, model, 5000, seed=1, method="gaussian_approx")
print(*(np.median(found.draws[name]) for name in ("loc", "scale")))
"""


@pytest.mark.slow
def test_fit_of_added_model_finds_the_simulated_truth(tmp_path):
    # 1. Make the page's edits to a copy of the repository.
    for name in ("schemas", "ldp_client", "js", "summaries", "inference"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    blocks = BLOCK.findall((ROOT / "docs" / "adding-a-model.md").read_text(encoding="utf-8"))
    assert len(blocks) == 2
    for title, text in blocks:
        if edit := EDIT.fullmatch(title):
            file, anchor = tmp_path / edit[1], edit[2] + "\n"
            before = file.read_text(encoding="utf-8")
            assert before.count(anchor) == 1
            file.write_text(before.replace(anchor, anchor + text), encoding="utf-8")
        else:
            (tmp_path / title).write_text(text, encoding="utf-8")
    # 2. Fit there.
    command, environment = [sys.executable, "-c", FITTED], {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [*map(float, done.stdout.split())] == pytest.approx([4.0, 1.0], abs=0.3)
