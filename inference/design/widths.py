"""Posterior widths in simulated studies, for numbers of devices and budgets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inference.design.calibration import empty_model, mixing_notes, prior_truths
from inference.design.information import TAILS
from inference.design.notes import Widths, clipping_notes
from inference.design.simulated_posteriors import Parameters, fit_studies, poor_chains
from inference.design.simulation import clipping, for_devices
from inference.design.truth import completed, first_possible
from inference.models.base import Truth
from schemas import Question

Vector = NDArray[np.float64]

# Simulated studies for each number of devices and epsilon.
REPEATS = 10
SIMULATED = f"NUTS on {REPEATS} simulated studies a cell; median half width of the 90 % interval"
DRAWS, THIN = 400, 1
# The most truths that are drawn from the prior of a record, to find REPEATS that its bounds allow.
TRIED = 500
# Enough for the prior's 5 % and 95 % quantiles to about two digits.
PRIOR_DRAWS = 2_000
# A median of widths hardly moves if fewer chains than these mix poorly.
SOME_MIX_POORLY = 0.25


def by_simulation(
    questions: Sequence[Question],
    devices: tuple[int, ...],
    answers: Sequence[int],
    given: Mapping[str, float],
    seed: int,
    progress: Callable[[str], None],
) -> tuple[Widths, list[Mapping[str, float]], tuple[str, ...]]:
    """Simulate and fit studies of a question at several epsilons.

    Returns:
        Half widths as of a `Plan`, the truths over which they are medians, and notes.

    Raises:
        InputError: as `plan` raises it.
    """
    # 1. Check before anything is simulated.
    first = questions[0]
    for question in questions:
        empty_model(for_devices(question, min(devices)))
    truths = possible_truths(first, given, seed)
    notes: tuple[str, ...] = ()
    # Numbers' models know of clipping: under a prior it needs no note.
    if given or first.ask == "record":
        random = np.random.default_rng([seed, 3])
        shares = [clipping(first, truth, random)[0] for truth in truths]
        notes = clipping_notes(first, float(np.mean(shares)), given)
    # 2. Simulate and fit studies, of each number of devices alone if the noise depends on it.
    groups = [tuple(answers)] if first.protocol is None else [(n,) for n in answers]
    sets = [(for_devices(question, sizes[0]), sizes) for question in questions for sizes in groups]
    found: dict[str, list[Parameters]] = {}
    poor = []
    for place, (question, sizes) in enumerate(sets):
        cells, epsilon = [(n, truth) for n in sizes for truth in truths], str(question.mechanism.epsilon)
        line = f"{question.id}: fitted {{}} of {len(cells)} simulated studies at epsilon {epsilon}"
        draws, _ = fit_studies(question, cells, seed, DRAWS, THIN, line, progress, (place, len(sets)))
        medians = {}
        for name, values in draws.items():
            low, high = np.quantile(values, TAILS, axis=1)
            medians[name] = np.median((high - low).reshape(-1, REPEATS) / 2, axis=1)
        found.setdefault(epsilon, []).append(medians)
        poor.append(poor_chains(draws))
    # 3. Put them together.
    each = {
        epsilon: {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for epsilon, parts in found.items()
    }
    worst = {name: max(float(np.mean(one[name])) for one in poor) for name in poor[0]}
    notes += mixing_notes(worst, SOME_MIX_POORLY)
    return each, [truth.parameters for truth in truths], notes


def possible_truths(question: Question, given: Mapping[str, float], seed: int) -> list[Truth]:
    """Return REPEATS truths from the prior, with the given parameters, that records between bounds can have.

    Raises InputError if none of TRIED draws is possible.
    """
    random = np.random.default_rng([seed, 4])
    drawn = prior_truths(question, TRIED if question.ask == "record" else REPEATS, seed)
    stated = (replace(truth, parameters=completed(question, truth.parameters, given)) for truth in drawn)
    possible = first_possible(question, (t for t in stated if clipping(question, t, random)[1]), REPEATS)
    return [possible[place % len(possible)] for place in range(REPEATS)]


def prior_half_widths(question: Question, seed: int) -> dict[str, float]:
    """{parameter: half of the prior's own 90 % interval}."""
    truths = prior_truths(question, PRIOR_DRAWS, seed)
    values = {name: [one.parameters[name] for one in truths] for name in truths[0].parameters}
    return {name: float(np.diff(np.quantile(one, TAILS))[0]) / 2 for name, one in values.items()}
