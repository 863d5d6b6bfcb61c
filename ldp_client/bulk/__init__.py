"""Perturb many answers at once in NumPy, with the same law and exactness as for one answer.

For data holders and gateways. Integers decide what is released, as on the device. Randomness comes from the
operating system unless another source is passed in.
"""

from ldp_client.bulk.perturbing import perturb_many, public_many, randomise_many

__all__ = ["perturb_many", "public_many", "randomise_many"]
