"""The scores of DPBLR's benchmark, and that its tables follow the prior they are judged by."""

import numpy as np
import pytest

from benchmarks.dpblr.worlds import draw_world, noise_scales, release


def test_tables_follow_the_prior() -> None:
    worlds = [draw_world(2, np.random.default_rng(i)) for i in range(2000)]
    variances = np.array([world.variance for world in worlds])
    standard = np.array([world.theta for world in worlds]) / np.sqrt(38 * variances)[:, None]
    assert variances.mean() == pytest.approx(0.5 / 19, rel=0.03)
    assert np.abs(standard.std(axis=0) - 1).max() < 0.08


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["published", "laplace", "gaussian"])
def test_a_release_has_the_noise_it_states(noise: str) -> None:
    world = draw_world(50, np.random.default_rng(1))
    releases = [release(world, 1.0, noise, np.random.default_rng(i)) for i in range(1500)]  # type: ignore[arg-type]
    errors = np.array([one.noisy.sums[0] - one.exact.sums[0] for one in releases])
    sd = noise_scales(world.rows, 1.0, noise) * (1.0 if noise == "gaussian" else np.sqrt(2))  # type: ignore[arg-type]
    assert errors.std(axis=0) == pytest.approx(sd, rel=0.2)
    assert np.all(errors == errors.swapaxes(1, 2))
