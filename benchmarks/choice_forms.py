"""What the count form of a choice's likelihood loses against the exact form: ratios of posterior sds.

python -m benchmarks.choice_forms [--reports 200000] [--choices 16 256]

For many reports a posterior's covariance is the inverse Fisher information, so the ratio needs no sampling:
of the exact form by simulated reports of the mechanism's law, of the count form from its normal law.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

AT_ONCE = 20_000
EPSILONS = (0.5, 1.0, 2.0, 4.0)


def shares_of(shape: str, k: int) -> Matrix:
    """Equal shares, or shares that fall as 1 / rank."""
    weights = np.ones(k) if shape == "equal" else 1 / np.arange(1.0, k + 1)
    return np.asarray(weights / weights.sum())


def unary_reports(shares: Matrix, p: float, q: float, n: int, rng: np.random.Generator) -> Matrix:
    """Bits of n simulated reports, (n, k)."""
    chance = np.full((n, len(shares)), q)
    chance[np.arange(n), rng.choice(len(shares), n, p=shares)] = p
    return (rng.random(chance.shape) < chance).astype(float)


def exact_information(shares: Matrix, p: float, q: float, reports: int, rng: np.random.Generator) -> Matrix:
    """Mean outer product of the score of one report (METHODS 3.1)."""
    excess = p * (1 - q) / (q * (1 - p)) - 1
    total = np.zeros((len(shares), len(shares)))
    for at in range(0, reports, AT_ONCE):
        bits = unary_reports(shares, p, q, min(AT_ONCE, reports - at), rng)
        score = bits * (excess / (1 + excess * bits @ shares))[:, None]
        total += score.T @ score
    return total / reports


def count_information(shares: Matrix, p: float, q: float) -> Matrix:
    """Of the counts' means, in the limit of many reports (METHODS 3.2)."""
    m, rise = q + (p - q) * shares, (p - q) * shares
    covariance = np.diag(m * (1 - m) + rise**2) - np.outer(rise, rise)
    return np.asarray((p - q) ** 2 * np.linalg.inv(covariance))


def posterior_sds(information: Matrix) -> Matrix:
    """On the simplex: shares sum to one."""
    k = len(information)
    plane = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, :-1]]))[0][:, 1:]
    covariance = plane @ np.linalg.inv(plane.T @ information @ plane) @ plane.T
    return np.asarray(np.sqrt(np.diag(covariance)))


def ratios(k: int, shape: str, epsilon: float, reports: int) -> Matrix:
    """sd of the count form over sd of the exact form, for each choice, under optimised unary encoding."""
    p, q = 0.5, 1 / (1 + np.exp(epsilon))
    shares = shares_of(shape, k)
    exact = exact_information(shares, p, q, reports, np.random.default_rng(0))
    return np.asarray(posterior_sds(count_information(shares, p, q)) / posterior_sds(exact))


def main(argv: Sequence[str] | None = None) -> None:
    """One row for each number of choices and law of the answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=200_000, help="more than there are choices")
    parser.add_argument("--choices", type=int, nargs="+", default=[16, 256])
    asked = parser.parse_args(argv)
    print("posterior sd of the count form / of the exact form: median (most) over the choices")
    print(f"{'':28}" + "".join(f"{f'epsilon {e:g}':>18}" for e in EPSILONS))
    for k in asked.choices:
        for shape in ("equal", "1 / rank"):
            found = [ratios(k, shape, epsilon, asked.reports) for epsilon in EPSILONS]
            cells = "".join(f"{f'{np.median(r):.3f} ({r.max():.3f})':>18}" for r in found)
            print(f"k = {k:3}, {shape:12}    {cells}", flush=True)


if __name__ == "__main__":
    main()
