"""Likelihoods are compared with brute force to many digits: double precision."""

import jax

jax.config.update("jax_enable_x64", True)
