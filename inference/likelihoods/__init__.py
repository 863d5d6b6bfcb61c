"""NumPyro distributions of summarised reports, including the mechanism's noise."""

from inference.likelihoods.choices.supports import PackedSupportSets
from inference.likelihoods.numbers.clipped import ClippedContinuous, ClippedLaw
from inference.likelihoods.numbers.noise import GaussianNoise, LaplaceNoise
from inference.likelihoods.numbers.perturbed import BinnedPerturbed, Perturbed, clipped
from inference.likelihoods.regression.records import PerturbedLinearRecords, perturbed_logistic_density

__all__ = [
    "BinnedPerturbed",
    "ClippedContinuous",
    "ClippedLaw",
    "GaussianNoise",
    "LaplaceNoise",
    "PackedSupportSets",
    "Perturbed",
    "PerturbedLinearRecords",
    "clipped",
    "perturbed_logistic_density",
]
