"""The noise that devices add to a number: a law of finitely many masses becomes a mixture."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp, ndtr
from jax.typing import ArrayLike
from numpy.typing import NDArray
from numpyro.distributions import Distribution, Laplace, Normal
from numpyro.distributions.util import not_jax_tracer
from scipy.special import ndtr as scipy_ndtr

Values = NDArray[np.float64]
_LAWS: dict[str, type[Distribution]] = {"laplace": Laplace, "gaussian": Normal}
# Reports × points that are held in memory at once.
_AT_ONCE = 1 << 22


def log_mixture(noise: str, points: ArrayLike, log_masses: Array, z: Array, scale: Array) -> Array:
    """Log density of masses plus noise: the shape of z.

    points and log_masses (..., Q) and scale (...) broadcast against z. O(reports × Q), in bounded memory
    where all reports share one law.
    """
    x = jnp.asarray(points)

    def mixed(z: Array, scale: Array) -> Array:
        kernel = _LAWS[noise](x, scale[..., None])
        return logsumexp(log_masses + kernel.log_prob(z[..., None]), axis=-1)

    count = x.shape[-1]
    if z.size * count <= _AT_ONCE or log_masses.ndim > 1 or scale.ndim:
        return mixed(z, scale)
    rows = jax.lax.map(jax.checkpoint(lambda z: mixed(z, scale)), z.ravel(), batch_size=_AT_ONCE // count)
    return rows.reshape(z.shape)


def mixture_cells(
    name: str, points: ArrayLike, log_masses: Array, edges: ArrayLike, scale: ArrayLike
) -> Array:
    """Probabilities (..., K + 2) of masses plus noise below, in each cell of, and above `edges` (K + 1,).

    points and log_masses (..., Q), scale (...). The channel is a constant where points, edges and scale are
    known before tracing.
    """
    known = all(not_jax_tracer(x) for x in (points, edges, scale))
    channel = noise_channel(name, points, edges, scale, np if known else jnp)
    return jnp.einsum("...q,...qk->...k", jnp.exp(log_masses), channel)


def noise_channel(name: str, points: Any, edges: Any, scale: Any, numpy: Any = np) -> Any:
    """Return the probabilities (..., Q, K + 2) of a report below, in each cell of, and above `edges`.

    Args:
        name: "laplace" or "gaussian".
        points: answers (..., Q).
        edges: increasing, (K + 1,).
        scale: of the noise, shape (...).
        numpy: the module that computes: NumPy, or JAX's.
    """
    u = (numpy.asarray(edges) - numpy.asarray(points)[..., None]) / numpy.asarray(scale)[..., None, None]
    below = noise_below(name, u, numpy)
    # Beyond the point, differences of the mass above.
    above = noise_below(name, -u, numpy)
    inside = numpy.where(u[..., :-1] > 0, above[..., :-1] - above[..., 1:], below[..., 1:] - below[..., :-1])
    return numpy.concatenate([below[..., :1], inside, above[..., -1:]], axis=-1)


def noise_below(name: str, z: Any, numpy: Any) -> Any:
    """Return the probabilities that noise of scale 1 is below z."""
    if name == "gaussian":
        return ndtr(z) if numpy is jnp else scipy_ndtr(z)
    tail = numpy.exp(-numpy.abs(z)) / 2
    return numpy.where(z < 0, tail, 1 - tail)


def cells_channel(name: str, scale: float, cells: int, edges: Values) -> Values:
    """Return probabilities (cells + 2, K + 2) of a report below, in each cell of, and above `edges`.

    Args:
        name: "laplace" or "gaussian".
        scale: of the noise, with the bounds at 0 and 1.
        cells: equal ones between the bounds, in which answers lie evenly. Before them comes the lower bound
            itself, behind them the upper one.
        edges: increasing, (K + 1,).

    Returns:
        The channel, whose rows sum to one: in closed form, by what the noise's law integrates to.
    """
    ends = np.linspace(0.0, 1.0, cells + 1)
    integrals = scale * _INTEGRALS[name]((edges - ends[:, None]) / scale)
    below = cells * (integrals[:-1] - integrals[1:])
    rest = np.zeros((cells, 1))
    inside = np.maximum(np.diff(np.concatenate([rest, below, rest + 1], axis=1), axis=1), 0.0)
    low, high = noise_channel(name, [0.0, 1.0], edges, scale)
    return np.concatenate([low[None], inside, high[None]])


# What `noise_below` integrates to.
_INTEGRALS: dict[str, Callable[[Values], Values]] = {
    "laplace": lambda z: np.maximum(z, 0.0) + np.exp(-np.abs(z)) / 2,
    "gaussian": lambda z: z * scipy_ndtr(z) + np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi),
}


class LaplaceNoise(Laplace):
    """Laplace noise around zero.

    Args:
        scale: mean absolute noise, in the unit of the bounds, shape (...).
    """

    name: ClassVar[str] = "laplace"

    def __init__(self, scale: ArrayLike) -> None:
        super().__init__(0.0, scale)


class GaussianNoise(Normal):
    """Gaussian noise around zero.

    Args:
        scale: standard deviation, in the unit of the bounds, shape (...).
    """

    name: ClassVar[str] = "gaussian"

    def __init__(self, scale: ArrayLike) -> None:
        super().__init__(0.0, scale)


Noise = LaplaceNoise | GaussianNoise
