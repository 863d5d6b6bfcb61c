"""Draw whole reports of simulated people: features of one column or two, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inference.analyses.subgroups import Mask
from inference.analyses.table import Codes, Values

# The number of people whose reports are drawn one by one: in all, and at least in each cell.
PEOPLE, LEAST_OF_A_CELL = 20_000, 200


@dataclass(frozen=True)
class Truths:
    """The possible true answers of people in each cell, and the probability of each feature given them.

    shares: (cells, combinations of the predictors). outcome: (cells, combinations, answers). of_outcome:
    (parts, answers, features), of_predictor: (parts, combinations, features), by part of the designs.
    """

    shares: Values
    outcome: Values
    of_outcome: Values
    of_predictor: Values

    def kinds(self) -> Values:
        """Return P(two features together), (parts of both, cells, features of both)."""
        laws = np.einsum("cka,pao->pcko", self.outcome, self.of_outcome)
        both = np.einsum("ck,pcko,qkj->pqcoj", self.shares, laws, self.of_predictor, optimize=True)
        return np.asarray(both.reshape(-1, both.shape[2], both.shape[3] * both.shape[4]))

    def reports(self, sizes: Codes, first: Mask, second: Mask, random: np.random.Generator) -> Values:
        """Return (cells, features of both): the number of simulated people whose reports have both features.

        sizes: (parts of both, cells) people. first, second: (parts,) whether each report of the outcome, and
        of the predictor, has exactly one feature.
        """
        expected = self.kinds()
        came = np.zeros(expected.shape[1:])
        for part, people in enumerate(sizes):
            cells = np.flatnonzero(people)
            if not len(cells):
                continue
            parts = divmod(part, len(self.of_predictor))
            exclusive = bool(first[parts[0]]), bool(second[parts[1]])
            if all(exclusive):
                laws = np.clip(expected[part, cells], 0, 1)
                came[cells] += random.multinomial(people[cells], laws / laws.sum(axis=-1, keepdims=True))
            else:
                of_cells = expected[part, cells]
                came[cells] += self.drawn(parts, exclusive, cells, people[cells], of_cells, random)
        return came

    def drawn(
        self,
        parts: tuple[int, int],
        exclusive: tuple[bool, bool],
        cells: Codes,
        sizes: Codes,
        expected: Values,
        random: np.random.Generator,
    ) -> Values:
        """Return (cells, features of both): the number of people whose reports have both features.

        Bits of one report depend on each other, so whole reports are drawn. If there are very many people,
        only some are drawn, and their distance from the expectation is scaled. expected: of these cells, from
        `kinds`. exclusive: whether each report has exactly one feature, of the outcome and of the predictor.
        """
        people = np.minimum(sizes, max(LEAST_OF_A_CELL, PEOPLE // len(cells)))
        joint = (self.shares[cells][:, :, None] * self.outcome[cells]).reshape(len(cells), -1)
        joint = np.clip(joint, 0, None)
        counts = random.multinomial(people, joint / joint.sum(axis=1, keepdims=True))
        truth = np.repeat(np.tile(np.arange(joint.shape[1]), len(cells)), counts.ravel())
        combination, answer = np.divmod(truth, self.outcome.shape[2])
        first = _shown(self.of_outcome[parts[0]], exclusive[0], answer, random)
        second = _shown(self.of_predictor[parts[1]], exclusive[1], combination, random)
        both = (first[:, :, None] * second[:, None, :]).reshape(len(truth), -1)
        starts = np.concatenate([[0], np.cumsum(people)[:-1]])
        came = np.add.reduceat(both, starts, axis=0)
        scale = np.sqrt(sizes / people)[:, None]
        return np.asarray(sizes[:, None] * expected + scale * (came - people[:, None] * expected))


def _shown(chances: Values, exclusive: bool, said: Codes, random: np.random.Generator) -> Values:
    """Return (people, features), 1 if the report has the feature. chances: (truths, features)."""
    if not exclusive:
        return (random.random((len(said), chances.shape[1])) < chances[said]).astype(np.float64)
    edges = np.cumsum(chances, axis=1)
    place = (random.random(len(said))[:, None] * edges[said, -1:] >= edges[said, :-1]).sum(axis=1)
    return np.eye(chances.shape[1])[place]
