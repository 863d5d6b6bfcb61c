"""NumPyro distributions of what is left after reports are summarised, the mechanism's noise included."""

from .base import ClippedExponential, ClippedLaw, ClippedNormal
from .choice import HadamardCounts, RandomizedResponseCounts
from .number import BinnedPerturbed, LaplaceNoise
from .regression import SummedLinearStatistics, SummedLogisticStatistics
from .support_counts import SubsetCounts, UnaryEncodingColumnSums
from .supports import PackedSupportSets, SupportPatterns, SupportSets, UnaryEncodingPatterns

__all__ = [
    "BinnedPerturbed",
    "ClippedExponential",
    "ClippedLaw",
    "ClippedNormal",
    "HadamardCounts",
    "LaplaceNoise",
    "PackedSupportSets",
    "RandomizedResponseCounts",
    "SubsetCounts",
    "SummedLinearStatistics",
    "SummedLogisticStatistics",
    "SupportPatterns",
    "SupportSets",
    "UnaryEncodingColumnSums",
    "UnaryEncodingPatterns",
]
