"""The law of data holders' noisy sums, without latent sums."""
