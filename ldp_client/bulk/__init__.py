"""Perturb many answers at once in NumPy, with the same law and exactness as for one answer.

For data holders and gateways. Integers decide what is released, as on the device. Randomness comes from the
operating system unless another source is passed in.
"""

from ldp_client.documents.errors import MissingExtraError

try:
    from ldp_client.bulk.perturbing import perturb_many, randomise_many
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    raise MissingExtraError("tables", "numpy") from None

__all__ = ["perturb_many", "randomise_many"]
