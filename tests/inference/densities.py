"""Joint log-densities of models and their gradients."""

import jax
import numpy as np
from numpyro.infer.util import log_density

from inference.models import model_for
from inference.sampling.space import as_arrays


def value_and_gradient(model):
    """The joint log-density at the model's own start, and its gradient."""
    return values_and_gradients([model])[0]


def values_and_gradients(models):
    """The same of many models of one question: one program, to which the data are arguments."""
    program = models[0].program
    joint = lambda sites, data: log_density(program, (), data, sites)[0]  # noqa: E731
    found = []
    with jax.enable_x64(True):
        compiled = jax.jit(jax.value_and_grad(joint))
        for model in models:
            value, gradient = compiled(as_arrays(model.initial, float), as_arrays(model.data))
            found.append((float(value), np.concatenate([np.ravel(g) for g in gradient.values()])))
    return found


def all_finite(question, summaries):
    """Whether the question's model is finite, and its gradient, under each of the summaries."""
    built = [model_for(question, summary) for summary in summaries]
    return all(
        np.isfinite(value) and np.isfinite(gradient).all() for value, gradient in values_and_gradients(built)
    )
