"""What noise-aware posteriors are compared with; `ldpkit fit` uses none of these.

`unbiased`: estimates of choice frequencies. `simplex`: their repairs. `noise_naive`: posteriors that take
noise for data. `ldp_sgd`: regression by noisy gradients. `pass_glm`: a published likelihood of summed
statistics. `raw_answers`: the posterior of raw answers, without any privacy.
"""

from .pass_glm import pass_glm_coefficients, pass_glm_log_likelihood

__all__ = ["pass_glm_coefficients", "pass_glm_log_likelihood"]
