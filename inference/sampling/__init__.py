"""Draw from a model: its posterior with NUTS, or nearly with a Gaussian approximation; its prior."""
