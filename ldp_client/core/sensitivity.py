"""L2 sensitivities of regression statistics under replace-one neighbours (METHODS 1.1 to 1.3).

Records have features with L2 norm at most `norm` and a response of size at most `response`.
svec is the upper triangle with off-diagonal entries times √2, so that it keeps the Frobenius norm.
"""

from math import sqrt

from ldp_client.core.integers import isqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


def joint_sensitivity(
    norm: float, response: float, var_xx: float, var_xy: float, var_yy: "Optional[float]" = None
) -> float:
    """Whitened L2 sensitivity of (svec xxᵀ, xy, y²), noise variance 1; without y² if var_yy is None.

    The supremum over all pairs of records: the largest of three cases, of which LDPBI Lemma 3.1
    states the first. For the logistic statistics (svec xxᵀ, yx) use response = 1 and no var_yy. The
    built-in mechanism releases svec(vvᵀ) and uses the bound below; this one is for analysts who
    release the three parts with variances of their own.
    """
    r2, t2 = norm * norm, response * response
    v1, v2 = var_xx, var_xy
    square_noise = 0.0 if var_yy is None else 1.0 / var_yy
    same_size = 2 * r2 * r2 / v1 + r2 * t2 / v2 + t2 * t2 * square_noise
    if t2 * v1 <= 2 * v2 * r2:
        opposite = 2 * r2 * r2 / v1 + 2 * r2 * t2 / v2 + t2 * t2 * v1 / (2 * v2 * v2)
    else:
        opposite = 4 * r2 * t2 / v2
    return sqrt(max(same_size, opposite, _unequal_responses(r2, response, v1, v2, var_yy)))


def _unequal_responses(r2: float, response: float, v1: float, v2: float, v3: "Optional[float]") -> float:
    """The case of two responses of different size; 0 where it does not arise."""
    if v3 is None:
        return 0.0
    slope = r2 / v2
    discriminant = response * response - 2 * slope * v3
    if discriminant <= 0:
        return 0.0
    w = (response - sqrt(discriminant)) / 2
    if w * response * v1 < 2 * v2 * r2:
        return 0.0
    return (response + w) ** 2 * (slope + (response - w) ** 2 / v3)


def outer_product_sensitivity(square_norm: int) -> int:
    """An integer at least √2 × square_norm: bounds ‖vvᵀ − wwᵀ‖ for integer vectors, ‖v‖², ‖w‖² ≤ square_norm.

    ‖vvᵀ − wwᵀ‖² = ‖v‖⁴ + ‖w‖⁴ − 2(v·w)². It is reached by two vectors at right angles.
    """
    return isqrt(2 * square_norm * square_norm) + 1
