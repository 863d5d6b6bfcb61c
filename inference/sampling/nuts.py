"""Drawing from a model's posterior with NUTS."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from inference.compiling import Program, raw_key
from inference.models.base import Draws, Model
from inference.results.convergence import Mixing, mixing, mixing_findings
from inference.samplers import CHAINS, KEPT, LENGTH
from inference.sampling.chains import CAREFUL_ACCEPTANCE, Chains, State, frozen, starts
from inference.sampling.space import Arrays, as_arrays, as_draws, space_of
from inference.sampling.whitening import MOST_DENSE, Shape, reshaped, shape_of
from summaries.progress import Step

# Draws of each warm-up phase: after each but the last, the chains' own draws determine the shape to move in.
WARMUP = (100, 100, 200)
# Chains that do not mix yet continue, until they have once, twice, four times the draws.
SCHEDULE = (1, 1, 2)
AGAIN = "drawing again with shorter steps, as chains diverged"
ON = "drawing on, as the chains do not mix yet"

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Sampled:
    """sites: {site: draws (chains, draws, …)}; diverging: (chains, draws); reasons not to trust them.

    mixing: of the parameters, if it was measured already. chained: whether each draw follows from the
    previous draw; independent draws do not mix, and their method judges them. may_diverge: as of the model.
    log_density, energy: (chains, draws), of the posterior and of the transitions, if they are known.
    """

    sites: Draws
    diverging: NDArray[np.bool_]
    reasons: tuple[str, ...] = ()
    mixing: Mixing | None = None
    chained: bool = True
    may_diverge: float = 0.0
    log_density: NDArray[np.float64] | None = None
    energy: NDArray[np.float64] | None = None


def sample(
    model: Model,
    seed: int,
    warmup: tuple[int, ...] = WARMUP,
    kept: int = KEPT,
    enough: Callable[[Sampled], bool] = lambda _drawn: True,
    count: int = CHAINS,
    progress: Progress = lambda _line: None,
) -> Sampled:
    """Draw NUTS chains in float64, `count` of them; the same seed on the same machine gives the same draws.

    warmup: draws of each phase, multiples of 100 as `kept` is. While the draws are not `enough`, the chains
    continue as SCHEDULE says. Chains that diverge more often than the model may start
    again, with shorter steps. progress: is called with their progress.
    """
    with jax.enable_x64(True):
        space, data = space_of(model), as_arrays(model.data)
        stretch = Stretch(progress)
        chains = Chains(space, LENGTH, told=stretch.add)
        axes = 1 if space.dimension > MOST_DENSE else 2
        chains.prepare(count, np.zeros((space.dimension,) * axes), data)
        each = jax.vmap(jax.vmap(space.sites, in_axes=(0, None)), in_axes=(0, None))
        sites_of = Program(each, runs_once=True)
        sites_of.prepare(np.zeros((count, kept, space.dimension)), data)
        begin = Program(
            lambda initial, data: (space.start(initial, data), jax.random.split(raw_key(seed), count)),
            runs_once=True,
        )
        start, keys = begin(as_arrays(model.initial, float), data)
        first = model.sampling.target_acceptance
        for place, target in enumerate((first, CAREFUL_ACCEPTANCE)[: 2 if first < CAREFUL_ACCEPTANCE else 1]):
            stretch.begin("drawing" if not place else AGAIN, sum(warmup) + kept)
            state, shape = _warmed(chains, np.asarray(start), data, seed, warmup, target, keys)
            rounds: list[Sampled] = []
            for times in SCHEDULE:
                if rounds:
                    stretch.begin(ON, times * kept)
                for _ in range(times):
                    state, moved = chains.run(state, shape.factor, data, kept)
                    sites = as_draws(sites_of(moved.vectors, data))
                    measured = {"log_density": -moved.potentials, "energy": moved.energies}
                    rounds.append(Sampled(sites, moved.diverging, **measured))
                drawn = _joined(rounds)
                if enough(drawn):
                    break
            if drawn.diverging.mean() <= model.sampling.may_diverge:
                break
    return drawn


class Stretch:
    """Tells of each stretch of draws how many of them a chain has made."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._words, self._done, self._total = "", 0, 1

    def begin(self, words: str, total: int) -> None:
        """Tell of another stretch of so many draws."""
        self._words, self._done, self._total = words, 0, total
        self.add(0)

    def add(self, draws: int) -> None:
        """Tell that a chain has made so many more."""
        self._done += draws
        said = f"{self._words}: {self._done:,} of {self._total:,} draws of each chain"
        self._progress(Step(said, self._done, self._total))


def _warmed(
    chains: Chains,
    start: NDArray[np.float64],
    data: Arrays,
    seed: int,
    phases: tuple[int, ...],
    target: float,
    keys: Array,
) -> tuple[State, Shape]:
    """Chains that have left their starts and found their step sizes, and the shape they move in."""
    slope = chains.slope_at(data)
    shape = shape_of(slope, start)
    vectors = starts(slope, shape, np.random.default_rng(seed), len(keys))
    state = chains.begin(vectors, keys, shape.factor, data)
    for phase, count in enumerate(phases, 1):
        state, moved = chains.run(state, shape.factor, data, count, adapt=True, target=target)
        if phase < len(phases):
            shape = reshaped(shape, moved.vectors)
            state = chains.begin(np.asarray(state.vector), state.key, shape.factor, data)
    return frozen(state) if phases else state, shape


def _joined(rounds: list[Sampled]) -> Sampled:
    sites = {name: np.concatenate([part.sites[name] for part in rounds], axis=1) for name in rounds[0].sites}
    diverging, log_density, energy = (
        np.concatenate([getattr(part, name) for part in rounds], axis=1)
        for name in ("diverging", "log_density", "energy")
    )
    return Sampled(sites, diverging, log_density=log_density, energy=energy)


def draw(
    model: Model,
    seed: int,
    draws: int,
    warmup: tuple[int, ...] = WARMUP,
    chains: int = CHAINS,
    progress: Progress = lambda _line: None,
) -> Sampled:
    """Draw until the chains mix, at most four times as long; warmup, progress: as `sample` takes them."""
    measured: list[Mixing] = []

    def enough(drawn: Sampled) -> bool:
        parameters = model.parameters(drawn.sites)
        measured.append(mixing(parameters))
        return not mixing_findings(parameters, drawn.sites, drawn.log_density, measured[-1])

    drawn = sample(model, seed, warmup, kept=draws, enough=enough, count=chains, progress=progress)
    return replace(drawn, mixing=measured[-1], may_diverge=model.sampling.may_diverge)
