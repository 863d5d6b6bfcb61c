"""NumPyro distributions of what is left after reports are summarised, the mechanism's noise included."""

from .base import ClippedExponential, ClippedLaw, ClippedNormal
from .choice import RandomizedResponseCounts, UnaryEncodingColumnSums, UnaryEncodingPatterns
from .number import BinnedPerturbed, LaplaceNoise
from .regression import SummedLinearStatistics, SummedLogisticStatistics

__all__ = [
    "BinnedPerturbed",
    "ClippedExponential",
    "ClippedLaw",
    "ClippedNormal",
    "LaplaceNoise",
    "RandomizedResponseCounts",
    "SummedLinearStatistics",
    "SummedLogisticStatistics",
    "UnaryEncodingColumnSums",
    "UnaryEncodingPatterns",
]
