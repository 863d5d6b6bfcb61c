"""What noise-aware posteriors are compared with; `ldpkit fit` uses none of these.

`unbiased`: estimates of choice frequencies. `simplex`: their repairs. `noise_naive`: posteriors that take
noise for data. `ldp_sgd`: regression by noisy gradients.
"""
