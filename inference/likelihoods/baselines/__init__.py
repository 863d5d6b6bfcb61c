"""Published likelihoods of summed regression statistics, by their own names, to compare with."""

from .dense import DenseLinearStatistics
from .pass_glm import pass_glm_coefficients, pass_glm_log_likelihood

__all__ = ["DenseLinearStatistics", "pass_glm_coefficients", "pass_glm_log_likelihood"]
