"""Figure 5: logistic regression on Adult, area under the curve against ε, beside LDP-SGD."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import rankdata

from benchmarks.baselines.ldp_sgd import logistic_loss_gradient
from benchmarks.ldpbi.data import adult
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

COMPONENTS = 6


def auc(line: NDArray[np.float64], part: Split) -> float:
    """The probability that a random positive test record scores above a random negative one."""
    ranks = rankdata(with_constant(part.test_x) @ line)
    yes = part.test_y > 0
    positives, negatives = int(yes.sum()), int((~yes).sum())
    return float((ranks[yes].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def run(out: Path, size: Size) -> None:
    """Print and draw it."""
    headline(
        "Figure 5: logistic regression on Adult, area under the curve on test records",
        "under strict privacy the noise-aware model beats LDP-SGD; for large ε it is nearly as good",
    )
    features, rich, _ = adult()
    x = principal_components(features, COMPONENTS)
    parts = splits(x, np.where(rich, 1.0, -1.0), size.of(10, 8, 2))
    epsilons = size.of((0.125, 0.25, 0.5, 1.0, 2.0), (0.25, 1.0), (1.0,))
    exact = float(np.mean([auc(_maximum_likelihood(part), part) for part in parts]))
    ours, signs, sgd = [], [], []
    for epsilon in epsilons:
        for arm, by_signs in ((ours, False), (signs, True)):
            lines = posterior_lines("logistic_regression", epsilon, parts, by_signs)
            arm.append(np.array([auc(line, part) for line, part in zip(lines, parts, strict=True)]))
        sgd.append(-best_sgd(logistic_loss_gradient, epsilon, parts, lambda line, part: -auc(line, part)))
    rows = [
        [e, *(float(f(arm)) for arm in arms for f in (np.mean, np.std))]
        for e, *arms in zip(epsilons, ours, signs, sgd, strict=True)
    ]
    show_table(["ε", "sums", "sd", "signs", "sd", "LDP-SGD", "sd"], rows)
    better, also = ([f"{row[0]:g}" for row in rows if row[arm] > row[5]] for arm in (1, 3))
    verdict(
        f"without privacy {exact:.3f}; noise-aware beats LDP-SGD at ε = {', '.join(better) or 'none'}, "
        f"by signs at {', '.join(also) or 'none'} "
        f"({COMPONENTS} components, {len(parts)} splits of {len(x)} records)"
    )
    levels = {"maximum likelihood without privacy": exact}
    save(compare_with_sgd(epsilons, (ours, signs, sgd), levels, "area under the curve"), out, "figure_5")


def _maximum_likelihood(part: Split) -> NDArray[np.float64]:
    x = with_constant(part.x)

    def loss(line: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = part.y * (x @ line)
        return float(np.logaddexp(0, -margin).mean()), logistic_loss_gradient(line, x, part.y).mean(0)

    return np.asarray(minimize(loss, np.zeros(x.shape[1]), jac=True).x)
