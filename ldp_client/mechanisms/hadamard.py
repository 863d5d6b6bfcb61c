"""Hadamard response (Acharya, Sun & Zhang 2019): one column of a Hadamard matrix, in a few bytes.

Sylvester's matrix has 1 in row r and column c if r & c has an even number of ones. A choice is a
row, except the first; S(c) is the set of rows with 1 in column c. For a large ε, half of all columns
are too many for a choice. The block form therefore has `blocks` matrices side by side. Each choice is
a row of a single block, and only half of that block's columns support it. No table is stored.
"""

from fractions import Fraction

from ldp_client.core.integers import bytes_below
from ldp_client.core.noise_levels import hadamard_blocks
from ldp_client.core.randomness import Source, random_bits, truth_or_other
from ldp_client.documents.question import Question
from ldp_client.mechanisms.base import register
from ldp_client.mechanisms.choice import ChoiceMechanism


@register
class Hadamard(ChoiceMechanism):
    """Report one of blocks × width columns, which supports the truth with probability threshold / 2**bits.

    Choice x is row x mod (width − 1) + 1 of block x div (width − 1). A payload is block × width + column,
    big-endian, in the fewest bytes that fit. q is for another choice in the same block, q_elsewhere for a
    choice in another block. They are equal if blocks is 1, which holds for e^ε ≤ 2.
    """

    name = "hadamard"

    def __init__(self, question: Question) -> None:
        super().__init__(question)
        epsilon = question.mechanism.epsilon
        self.blocks = hadamard_blocks(epsilon, self.choices)
        self.width = 2
        while (self.width - 1) * self.blocks < self.choices:
            self.width *= 2
        # A choice's row splits each block into two halves. Only one half, in the choice's block, supports it.
        self._respond(epsilon, 2 * self.blocks)
        other_half = self.q
        # Another row of the block cuts both halves in two. One half supports a row of another block.
        self.q = (self.p + other_half) / 2
        self.q_elsewhere = other_half if self.blocks > 1 else self.q
        self.columns = self.blocks * self.width
        self.payload_size = bytes_below(self.columns)

    def place(self, index: int) -> tuple[int, int]:
        """Return the block of a choice and its row there."""
        return index // (self.width - 1), index % (self.width - 1) + 1

    def support_probability(self, true: int, index: int) -> Fraction:
        """Return p for the true choice, q for others of its block, q_elsewhere for all others."""
        if true == index:
            return self.p
        return self.q if self.place(true)[0] == self.place(index)[0] else self.q_elsewhere

    def randomise(self, quantised: int, random: Source) -> bytes:
        """Draw a half of a block by randomized response, then a column of that half, uniformly."""
        block, row = self.place(quantised)
        half = truth_or_other(2 * block, 2 * self.blocks, self.threshold, random)
        column = random_bits(32, random) & (self.width - 1)
        # Flipping one of the row's bits maps each half of the columns onto the other half.
        column ^= (row & -row) * (((column & row).bit_count() ^ half) & 1)
        return ((half >> 1) * self.width + column).to_bytes(self.payload_size, "big")

    def supported(self, payload: bytes, index: int) -> bool:
        """Return True if the choice's row has 1 in the reported column."""
        block, row = self.place(index)
        reported, column = divmod(int.from_bytes(payload, "big"), self.width)
        return reported == block and (column & row).bit_count() % 2 == 0

    def check(self, payload: bytes) -> None:
        """Raise ReportError unless the payload is a column."""
        super().check(payload)
        if int.from_bytes(payload, "big") >= self.columns:
            raise self.impossible(f"is not among {self.columns} codes")
