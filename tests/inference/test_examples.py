"""The documented models of a user's own run, and find what was simulated."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import ldpkit
from ldp_client.core.randomness import NotForRealAnswers
from summaries.summary import QuestionSummary
from tests.kit.programs import need

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def example_of(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.long_runs
def test_pooled_regions_are_near_the_truth_and_nearer_than_the_noise(monkeypatch):
    example = example_of("partial_pooling")
    # So few that most of what is known of their region comes from the others.
    monkeypatch.setattr(example, "LAST_PEOPLE", 25)
    monkeypatch.setattr(example, "EDGES", np.linspace(0.0, 1.0, 17))
    means = np.array([0.42, 0.55, 0.48, 0.61, 0.50, 0.45])
    with jax.enable_x64(True):
        drawn = example.fit(example.simulate(means, sd=0.15, seed=1), seed=2, draws=150)["mean"]
    assert drawn.shape == (300, 6)
    assert np.all(np.abs(drawn.mean(0) - means) < 5 * drawn.std(0))
    # Alone, a region's mean is known to no better than its clipped reports' spread over the root of n.
    alone = np.append(np.sqrt(2) / example.EPSILONS / np.sqrt(example.PEOPLE), example.LAST_NOISE_SD / 5)
    assert drawn.std(0)[2] < 0.8 * alone[2]
    assert drawn.std(0)[5] < 0.7 * alone[5]


@pytest.mark.slow
def test_a_panel_spends_once_however_many_weeks(capsys, monkeypatch):
    example = example_of("weekly_panel")
    monkeypatch.setattr(example, "PEOPLE", 20)
    assert example.main() == 0
    said = capsys.readouterr().out
    assert [line.split(",")[0] for line in said.splitlines() if line.startswith("week")] == [
        f"week {number}: smokes (bernoulli" for number in range(1, 5)
    ]
    assert said.count("(bernoulli, 20 reports)") == 4
    assert "left of each person's budget of 2, after 4 weeks: 0.00" in said


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


@pytest.mark.slow
def test_telemetry_example_keeps_its_error_rates():
    """5 % of 100 surveys of 20,000 devices may fail in each way; 13 are beyond chance (p < 0.002)."""
    example = example_of("telemetry")
    study = example.survey()
    mechanism = ldpkit.mechanisms_of(study)["feature"]
    random = np.random.default_rng(4)
    noise = NotForRealAnswers(random.bytes)
    shares = np.zeros(example.FEATURES)
    shares[list(example.CRASHING)] = 2.0 ** -np.arange(1, 7)
    shares[example.CRASHING[0]] += 1 - shares.sum()
    false, missed = 0, 0
    for _ in range(100):
        truth = random.choice(example.FEATURES, size=20_000, p=shares)
        part = QuestionSummary.of(mechanism, ldpkit.perturb_many(mechanism, truth, noise))
        summary = ldpkit.Summary(study.id, study.version, study.digest, {"feature": part})
        named = example.stand_out(study, summary)
        false += any(shares[one.feature] == 0 for one in named)
        missed += any(not one.low <= shares[one.feature] <= one.high for one in named if shares[one.feature])
    assert false < 13
    assert missed < 13
    # Not for want of trying: each of these stands out every time.
    assert {one.feature for one in named} >= set(example.CRASHING)


@pytest.mark.slow
def test_the_page_on_models_runs(tmp_path):
    (code,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "models.md").read_text(), flags=re.M | re.S
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    # The mean is 0.3 before clipping; five posterior sd are about 0.2.
    assert 0.15 < float(done.stdout) < 0.5


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def errors(notebook):
    return [one for cell in code_cells(notebook) for one in cell.outputs if one.output_type == "error"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_as_they_ran_from_top_to_bottom(path):
    need("nbclient")
    import nbformat

    notebook = nbformat.read(path, 4)
    assert [cell.execution_count for cell in code_cells(notebook)] == list(
        range(1, len(code_cells(notebook)) + 1)
    )
    assert any(cell.outputs for cell in code_cells(notebook))
    assert not errors(notebook)
    # What was printed is of no machine: a folder of somebody's would be.
    assert not re.search(r"(?<![\w./:])/(home|root|tmp|usr|work|var|Users)/", path.read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    """They run without an error; those on real data are left out, so that all machines run the same."""
    need("nbclient")
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, 4)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    own = {"PYTHONPATH": str(ROOT), "LDPKIT_DATA": str(tmp_path)}
    # Where the commands are.
    own["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    client.execute(env={**os.environ, **own})
    assert len(NOTEBOOKS) == 4
    assert not errors(notebook)
