"""NumPyro distributions of summarised reports, including the mechanism's noise."""

from inference.likelihoods.choices.multinomial import HadamardCounts, RandomizedResponseCounts
from inference.likelihoods.choices.support_counts import SubsetCounts, UnaryEncodingColumnSums
from inference.likelihoods.choices.supports import PackedSupportSets
from inference.likelihoods.numbers.clipped import ClippedContinuous, ClippedLaw
from inference.likelihoods.numbers.noise import GaussianNoise, LaplaceNoise
from inference.likelihoods.numbers.perturbed import BinnedPerturbed, Perturbed, clipped
from inference.likelihoods.regression.products import ProductSigns, SignPatterns
from inference.likelihoods.regression.records import PerturbedLinearRecords, perturbed_logistic_density

__all__ = [
    "BinnedPerturbed",
    "ClippedContinuous",
    "ClippedLaw",
    "GaussianNoise",
    "HadamardCounts",
    "LaplaceNoise",
    "PackedSupportSets",
    "Perturbed",
    "PerturbedLinearRecords",
    "ProductSigns",
    "RandomizedResponseCounts",
    "SignPatterns",
    "SubsetCounts",
    "UnaryEncodingColumnSums",
    "clipped",
    "perturbed_logistic_density",
]
