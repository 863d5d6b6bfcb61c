"""The samplers of posteriors: their names, what people read of them, and where they draw.

Loads no JAX: the command line lists them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from inference.models.base import Model
    from inference.sampling.nuts import Sampled


CHAINS = 4
# Draws that each chain keeps, and of one call of the compiled program: it divides every phase.
KEPT, LENGTH = 1000, 100


class Sampler(NamedTuple):
    """One sampler.

    name: as `fit(…, method=…)` and `--method` take it. label: on the report page. remedy: what to do about
    poor draws. home: the module whose `draw` it is. tables_alone: whether it is for data holders' tables.
    """

    name: str
    label: str
    remedy: str
    home: str
    tables_alone: bool = False

    def draw(self, model: Model, seed: int, draws: int, chains: int = CHAINS) -> Sampled:
        """Draw `draws` of each chain from a model's posterior."""
        found: Any = import_module(self.home).draw(model, seed, draws, chains=chains)
        return found


# The remedy for poor chains of NUTS, and for poor draws of any other method.
KEEP_MORE = "keep more draws (--draws, or draws= in Python)"
OTHER_REMEDY = "use the method marginal"
_NUTS, _APPROXIMATION = "inference.sampling.nuts", "inference.sampling.gaussian_approximation"
SAMPLERS = {
    one.name: one
    for one in (
        Sampler("nuts", "NUTS", KEEP_MORE, _NUTS),
        Sampler(
            "gaussian_approx",
            "Gaussian approximation at the mode, importance-resampled",
            "use --method nuts",
            _APPROXIMATION,
        ),
        Sampler("marginal", "NUTS", KEEP_MORE, _NUTS, tables_alone=True),
    )
}
