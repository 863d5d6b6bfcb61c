"""Choice mechanisms with a planted fault, which a test of the exact law must find."""

from ldp_client.mechanisms.choice import RandomizedResponse
from ldp_client.mechanisms.hadamard import Hadamard
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.mechanisms.unary import Sue


class ForgetfulSubset(SubsetSelection):
    """Adds the truth without taking another one out, so that its size gives it away."""

    def randomise(self, quantised, random):
        return self.pack(int.from_bytes(super().randomise(quantised, random), "little") | 1 << quantised)


class LopsidedHadamard(Hadamard):
    """Takes the other half of a block by flipping the lowest bit, whatever the row."""

    def randomise(self, quantised, random):
        payload = super().randomise(quantised, random)
        return bytes([payload[0] ^ (quantised & 1)])


class SharedBitSue(Sue):
    """Uses one random bit for two choices."""

    def randomise(self, quantised, random):
        bits = super().randomise(quantised, random)[0]
        return bytes([bits & ~2 | bits << 1 & 2])


class LazyResponse(RandomizedResponse):
    """The other choice may be the true one."""

    def randomise(self, quantised, random):
        truthful = int.from_bytes(random(4), "big") < self.threshold
        other = int.from_bytes(random(4), "big")
        return bytes([quantised if truthful else other])
