"""Figure 4: linear regression on Wine, error against ε, beside LDP-SGD."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.ldp_sgd import squared_loss_gradient
from benchmarks.ldpbi.data import wine
from benchmarks.ldpbi.regressions import (
    Split,
    best_sgd,
    compare_with_sgd,
    posterior_lines,
    principal_components,
    splits,
    with_constant,
)
from benchmarks.running import Size, headline, save, show_table, verdict

COMPONENTS = 4
# The bounds 4 to 8 hold for all but 35 wines; reports count those as the nearest bound.
MIDDLE, HALF = 6.0, 2.0
# Sds of the coefficients' prior: a component at its limit, not its middle, moves a wine by 2, 1, ½ points.
SCALES = ("1", "0.5", "0.25")


def rmse(line: NDArray[np.float64], part: Split) -> float:
    """Root mean squared error on the test wines, in points."""
    return float(HALF * np.sqrt(np.mean((with_constant(part.test_x) @ line - part.test_y) ** 2)))


def run(out: Path, size: Size) -> None:
    """Print and draw it."""
    headline(
        "Figure 4: linear regression on Wine, root mean squared error on test wines",
        "the noise-aware model does well under strict privacy; LDP-SGD starts to do better as ε grows",
    )
    features, quality = wine()
    x = principal_components(features, COMPONENTS)
    parts = splits(x, (quality - MIDDLE) / HALF, size.of(10, 8, 2))
    epsilons = size.of((0.5, 1.0, 2.0, 4.0, 8.0), (0.5, 2.0), (2.0,))
    scales = size.of(SCALES, SCALES, SCALES[:1])
    exact = float(np.mean([rmse(_least_squares(part), part) for part in parts]))
    constant = float(np.mean([rmse(np.r_[part.y.mean(), np.zeros(COMPONENTS)], part) for part in parts]))
    ours, signs, sgd = [], [], []
    for epsilon in epsilons:
        for arm, by_signs in ((ours, False), (signs, True)):
            arm.append(_noise_aware(epsilon, parts, by_signs, scales))
        sgd.append(best_sgd(squared_loss_gradient, epsilon, parts, rmse))
    rows = [
        [e, *(float(f(arm)) for arm in arms for f in (np.mean, np.std))]
        for e, *arms in zip(epsilons, ours, signs, sgd, strict=True)
    ]
    show_table(["ε", "sums", "sd", "signs", "sd", "LDP-SGD", "sd"], rows)
    better, also = ([f"{row[0]:g}" for row in rows if row[arm] < row[5]] for arm in (1, 3))
    verdict(
        f"without privacy {exact:.3f}, mean alone {constant:.3f}; noise-aware beats LDP-SGD at ε = "
        f"{', '.join(better) or 'none'}, "
        f"by signs at {', '.join(also) or 'none'} ({COMPONENTS} components, {len(parts)} splits of "
        f"{len(x)} wines)"
    )
    levels = {"least squares without privacy": exact, "the mean quality": constant}
    save(
        compare_with_sgd(epsilons, (ours, signs, sgd), levels, "root mean squared error, points"),
        out,
        "figure_4",
    )


def _noise_aware(
    epsilon: float, parts: Sequence[Split], by_signs: bool, scales: Sequence[str]
) -> NDArray[np.float64]:
    """The score on each split under the prior that suits test data best, as LDP-SGD's learning rate does."""
    found = []
    for scale in scales:
        lines = posterior_lines("linear_regression", epsilon, parts, by_signs, scale)
        found.append(np.array([rmse(line, part) for line, part in zip(lines, parts, strict=True)]))
    return min(found, key=lambda scores: float(scores.mean()))


def _least_squares(part: Split) -> NDArray[np.float64]:
    return np.asarray(np.linalg.lstsq(with_constant(part.x), part.y, rcond=None)[0])
