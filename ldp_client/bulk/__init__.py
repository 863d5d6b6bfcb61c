"""Many answers at once, in NumPy, for data holders and gateways: the law and the exactness of one answer.

Loaded only by `Mechanism.perturb_many`. Integers decide what is released, as on the device; randomness comes
from the same kind of source, the operating system's unless another is passed in.
"""

from ldp_client.bulk.perturbing import perturb_many, public_many, randomise_many

__all__ = ["perturb_many", "public_many", "randomise_many"]
