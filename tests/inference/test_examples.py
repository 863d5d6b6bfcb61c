"""The documented models of a user's own run, and find what was simulated."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def partial_pooling():
    spec = importlib.util.spec_from_file_location("partial_pooling", ROOT / "examples" / "partial_pooling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_pooled_regions_are_near_the_truth_and_nearer_than_the_noise():
    example = partial_pooling()
    means = np.array([0.42, 0.55, 0.48, 0.61, 0.50, 0.45])
    with jax.enable_x64(True):
        drawn = example.fit(example.simulate(means, sd=0.15, seed=1), seed=2, draws=300)["mean"]
    assert drawn.shape == (600, 6)
    assert np.all(np.abs(drawn.mean(0) - means) < 5 * drawn.std(0))
    # Alone, a region's mean is known to no better than its clipped reports' spread over the root of n.
    alone = np.append(np.sqrt(2) / example.EPSILONS / np.sqrt(example.PEOPLE), example.LAST_NOISE_SD / 20)
    assert drawn.std(0)[2] < 0.8 * alone[2]
    assert drawn.std(0)[5] < 0.9 * alone[5]


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
