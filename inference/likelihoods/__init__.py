"""NumPyro distributions of what is left after reports are summarised, the mechanism's noise included."""

from .base import ClippedExponential, ClippedLaw, ClippedNormal
from .choice import RandomizedResponseCounts, UnaryEncodingColumnSums, UnaryEncodingPatterns
from .continuous import ClippedContinuous
from .discrete import ClippedDiscrete
from .noise import GaussianNoise, LaplaceNoise
from .number import BinnedPerturbed, Perturbed, clipped
from .records import PerturbedLinearRecords, PerturbedLogisticRecords
from .regression import SummedLinearStatistics, SummedLogisticStatistics

__all__ = [
    "BinnedPerturbed",
    "ClippedContinuous",
    "ClippedDiscrete",
    "ClippedExponential",
    "ClippedLaw",
    "ClippedNormal",
    "GaussianNoise",
    "LaplaceNoise",
    "Perturbed",
    "PerturbedLinearRecords",
    "PerturbedLogisticRecords",
    "RandomizedResponseCounts",
    "SummedLinearStatistics",
    "SummedLogisticStatistics",
    "UnaryEncodingColumnSums",
    "UnaryEncodingPatterns",
    "clipped",
]
