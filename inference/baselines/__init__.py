"""What noise-aware posteriors are compared with; none of these is used by `fit`.

`unbiased`: estimates of choice frequencies. `simplex`: their repairs. `noise_naive`: posteriors that take
noise for data. `ldp_sgd`: regression by noisy gradients. The posterior of raw answers, without any privacy,
is `inference.models.raw`.
"""
