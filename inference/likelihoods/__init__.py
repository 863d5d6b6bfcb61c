"""NumPyro distributions of what is left after reports are summarised, the mechanism's noise included."""

from .base import ClippedExponential, ClippedLaw, ClippedNormal
from .choice import HadamardCounts, RandomizedResponseCounts
from .continuous import ClippedContinuous
from .discrete import ClippedDiscrete
from .noise import GaussianNoise, LaplaceNoise
from .number import BinnedPerturbed, Perturbed, clipped
from .records import PerturbedLinearRecords, PerturbedLogisticRecords
from .regression import SummedLinearStatistics, SummedLogisticStatistics
from .support_counts import SubsetCounts, UnaryEncodingColumnSums
from .supports import PackedSupportSets, SupportPatterns, SupportSets, UnaryEncodingPatterns

__all__ = [
    "BinnedPerturbed",
    "ClippedContinuous",
    "ClippedDiscrete",
    "ClippedExponential",
    "ClippedLaw",
    "ClippedNormal",
    "GaussianNoise",
    "HadamardCounts",
    "LaplaceNoise",
    "PackedSupportSets",
    "Perturbed",
    "PerturbedLinearRecords",
    "PerturbedLogisticRecords",
    "RandomizedResponseCounts",
    "SubsetCounts",
    "SummedLinearStatistics",
    "SummedLogisticStatistics",
    "SupportPatterns",
    "SupportSets",
    "UnaryEncodingColumnSums",
    "UnaryEncodingPatterns",
    "clipped",
]
