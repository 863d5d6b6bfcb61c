"""How often the intervals of `nonparametric`, a number without a law, hold the truth, and how wide they are.

python -m benchmarks.nonparametric [--only LAW …] [--epsilon 1 4] [--people 2000 100000] [--studies 200]
[--draws 2000]

Answers of each law are clipped to 0 … 1 under Laplace noise. As the likelihood is that of the reports' cells,
exactly, a study is one multinomial draw of them. Chains run once for all studies of a line of the table, on
what half the people would be expected to report; each study's posterior is those draws, weighted by its own
likelihood over theirs. Printed: in what share of studies the 90 % interval holds the truth, for the mean, the
sd, five quantiles and the shares above five places; the mean's interval relative to that of the plain average
of the unclipped reports; the chains' R-hat and the share of their transitions that diverge; and the effective
draws of the median study, and of the one that five in a hundred are below.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import starmap
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.compiling import use_compile_cache
from inference.likelihoods.numbers.noise import cells_channel
from inference.models import model_for
from inference.models.nonparametric import grouped_channel
from inference.models.number import cell_edges
from inference.results.convergence import is_fixed, mixing
from inference.sampling.nuts import Sampled, sample
from ldp_client import mechanism_for
from schemas import Question, Study
from summaries import QuestionSummary

Values = NDArray[np.float64]
Parameters = dict[str, Values]
Answers = Callable[[Generator, int], Values]

HEAD = {"format": "ldpkit.study/1", "id": "nonparametric", "version": 1, "title": "Without a law"}
# Of the people whose expected reports the chains are run on.
TEMPERED = 0.5
TAILS = (0.05, 0.95)
# Of the answers that stand for a law, and of the cells in which they are counted: no interval shows it.
MANY, FINE = 1_000_000, 4000


def bimodal(random: Generator, n: int) -> Values:
    return np.where(random.random(n) < 0.5, random.normal(0.25, 0.06, n), random.normal(0.75, 0.06, n))


def heaped(random: Generator, n: int) -> Values:
    """All at multiples of 5, between 0 and 100."""
    return np.round(20 * random.normal(0.45, 0.18, n)) / 20


def spike(random: Generator, n: int) -> Values:
    return np.where(random.random(n) < 0.3, 1.0, random.beta(3.0, 3.0, n))


def zero_inflated(random: Generator, n: int) -> Values:
    return np.where(random.random(n) < 0.4, 0.0, random.gamma(4.0, 0.1, n))


LAWS: dict[str, Answers] = {
    "normal": lambda random, n: random.normal(0.5, 0.12, n),
    "uniform": lambda random, n: random.random(n),
    "exponential": lambda random, n: random.exponential(0.15, n),
    "lognormal": lambda random, n: random.lognormal(np.log(0.2), 0.7, n),
    "bimodal": bimodal,
    "spike": spike,
    "skewed": lambda random, n: random.lognormal(np.log(0.03), 1.2, n),
    "heaped": heaped,
    "zero-inflated": zero_inflated,
    "all at a bound": lambda _random, n: np.zeros(n),
}


def question_of(epsilon: str) -> Question:
    asked = {"id": "x", "ask": "number", "bounds": ["0", "1"]}
    return Study(
        {**HEAD, "questions": [{**asked, "mechanism": {"name": "laplace", "epsilon": epsilon}}]}
    ).questions[0]


@cache
def answers_of(law: str) -> Values:
    """Many answers (MANY,) of a law, clipped to 0 … 1."""
    return np.clip(LAWS[law](np.random.default_rng(1), MANY), 0, 1)


def report_cells(question: Question, answers: Values) -> Values:
    """Probabilities (cells + 2,) of a report's cells, when somebody has one of these answers."""
    edges, scale = cell_edges(mechanism_for(question))
    inside = answers[(answers > 0) & (answers < 1)]
    counts = np.histogram(inside, FINE, (0, 1))[0]
    places = np.concatenate([[np.sum(answers <= 0)], counts, [np.sum(answers >= 1)]]) / len(answers)
    return np.asarray(places @ cells_channel("laplace", scale, FINE, edges))


class Studies(NamedTuple):
    """draws: {parameter: (draws,)} for all studies; weights (studies, draws): of each in each study."""

    draws: Parameters
    weights: Values
    chains: Sampled
    r_hat: float

    @property
    def effective(self) -> Values:
        """Draws (studies,) that the weights leave."""
        return np.asarray(1 / np.sum(self.weights**2, axis=1))

    def intervals(self, name: str) -> Values:
        """The ends (2, studies) of the 90 % intervals."""
        order = np.argsort(self.draws[name])
        below = np.cumsum(self.weights[:, order], axis=1)
        places = [np.minimum((below < tail).sum(axis=1), len(order) - 1) for tail in TAILS]
        return self.draws[name][order][np.stack(places)]


def simulated(question: Question, law: str, n: int, studies: int, seed: int, draws: int) -> Studies:
    """So many studies of n people, each fitted."""
    cells = report_cells(question, answers_of(law))
    drawn = np.random.default_rng(seed).multinomial(n, cells / cells.sum(), studies)
    expected = np.round(TEMPERED * n * cells).astype(np.int64)
    found = sample(model_for(question, QuestionSummary(int(expected.sum()), expected)), seed, kept=draws)
    parameters = model_for(question, QuestionSummary(n, expected)).parameters(found.sites)
    moving = {name: one for name, one in parameters.items() if not is_fixed(one)}
    weights = _weights(question, found.sites["shares"], drawn - expected)
    flat = {name: one.ravel() for name, one in parameters.items()}
    return Studies(flat, weights, found, max(mixing(moving).r_hat.values()))


def _weights(question: Question, shares: Values, more: Values) -> Values:
    """Weights (studies, draws) of draws whose reports were counted, and then `more` (studies, cells) were."""
    starts, channel = grouped_channel(mechanism_for(question), shares.shape[-1] - 2)
    logs = np.log(shares.reshape(-1, shares.shape[-1]) @ channel)
    height = np.add.reduceat(more, starts, axis=1) @ logs.T
    weights = np.exp(height - height.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def truth_of(law: str, parameters: Parameters) -> dict[str, float]:
    """Of the clipped answers; of those at a place itself half count as above it."""
    answers = answers_of(law)
    found = {"mean": float(answers.mean()), "sd": float(answers.std()), "median": float(np.median(answers))}
    for name in parameters:
        if name.startswith("above["):
            place = float(name[6:-1])
            found[name] = float(np.mean(answers > place) + np.mean(np.abs(answers - place) < 1e-9) / 2)
        elif name.startswith("quantile["):
            found[name] = float(np.quantile(answers, float(name[9:-1])))
    return found


def covered(ends: Values, truth: float) -> float:
    """The share of intervals (2, studies) that hold the truth, to the rounding of sums."""
    return float(np.mean((ends[0] - 1e-9 <= truth) & (truth <= ends[1] + 1e-9)))


def coverage(law: str, found: Studies) -> dict[str, float]:
    """{parameter: the share of studies whose interval holds the truth}."""
    return {name: covered(found.intervals(name), true) for name, true in truth_of(law, found.draws).items()}


def plain_width(law: str, epsilon: str, n: int) -> float:
    """Of the interval of the reports' plain average."""
    variance = float(np.var(answers_of(law))) + 2 / float(epsilon) ** 2
    return float(2 * 1.6449 * np.sqrt(variance / n))


def row(law: str, epsilon: str, n: int, studies: int, seed: int, draws: int) -> str:
    began = time.process_time()
    found = simulated(question_of(epsilon), law, n, studies, seed, draws)
    held = coverage(law, found)
    quantiles = [share for name, share in held.items() if name == "median" or name.startswith("quantile[")]
    places = [share for name, share in held.items() if name.startswith("above[")]
    wide = np.mean(np.diff(found.intervals("mean"), axis=0)) / plain_width(law, epsilon, n)
    median, worst = np.quantile(found.effective, (0.5, 0.05))
    return (
        f"{law:14} epsilon {epsilon} n {n:>6}: mean {held['mean']:.2f} sd {held['sd']:.2f} "
        f"quantiles {_each(quantiles)} above {_each(places)} width {wide:.2f}; "
        f"R-hat {found.r_hat:.3f} diverged {found.chains.diverging.mean():.4f} "
        f"effective {median:.0f} {worst:.0f}; {time.process_time() - began:.0f} s"
    )


def _each(shares: list[float]) -> str:
    return f"{np.mean(shares):.2f} ({' '.join(f'{share:.2f}' for share in shares)})"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=LAWS, default=list(LAWS), metavar="LAW")
    parser.add_argument("--epsilon", nargs="+", default=["1", "4"])
    parser.add_argument("--people", nargs="+", type=int, default=[2_000, 100_000])
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--draws", type=int, default=2_000, help="of each of four chains")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    use_compile_cache()
    asked = [(law, epsilon, n) for law in given.only for epsilon in given.epsilon for n in given.people]
    for line in starmap(row, [(*one, given.studies, given.seed, given.draws) for one in asked]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
