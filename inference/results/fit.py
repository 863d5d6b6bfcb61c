"""What `fit` returns: the posteriors of a study's questions, with a table and sentences to quote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference.results.intervals import USUAL, interval_of
from inference.results.posterior import Posterior
from inference.results.printed import text_of
from inference.results.verdict import NOT_USABLE

if TYPE_CHECKING:
    import pandas as pd


class Fit(dict[str, Posterior]):
    """{question id: Posterior}, in the order of the study. Notebooks show it as a table."""

    def table(self, level: float = USUAL.level) -> pd.DataFrame:
        """Return what answers each question, in the reader's terms.

        Args:
            level: the probability that intervals hold.

        Returns:
            A row for each quantity: question, quantity, median and interval in the question's own units, and
            its verdict. A quantity that is not usable has no numbers.

        Raises:
            InputError: level is no probability.
        """
        import pandas as pd

        interval = interval_of(level)
        tails = [(1 - level) / 2, 0.5, (1 + level) / 2]
        rows = []
        for name, posterior in self.items():
            for parameter in posterior.headlines:
                verdict = posterior.verdict.of(parameter).word
                low, median, high = np.quantile(posterior.draws[parameter], tails).tolist()
                if verdict == NOT_USABLE:
                    low, median, high = np.nan, np.nan, np.nan
                quantity = posterior.in_words(parameter, interval)[0]
                rows.append((name, quantity, median, low, high, verdict))
        return pd.DataFrame(rows, columns=["question", "quantity", "median", "low", "high", "verdict"])

    def sentences(self, level: float = USUAL.level) -> list[str]:
        """Return a sentence to quote for each quantity that may be used, with its interval.

        Args:
            level: the probability that intervals hold.

        Returns:
            Sentences such as "ever: yes 30.5 % (90 % interval 26.6 to 34.4 %)".

        Raises:
            InputError: level is no probability.
        """
        interval = interval_of(level)
        lines = []
        for name, posterior in self.items():
            for parameter in posterior.headlines:
                if posterior.verdict.of(parameter).word != NOT_USABLE:
                    quantity, median, ends = posterior.in_words(parameter, interval)
                    lines.append(f"{name}: {quantity} {median} ({interval.name} {ends})")
        return lines

    def __repr__(self) -> str:
        return "\n".join(text_of(posterior, USUAL) for posterior in self.values())

    def _repr_html_(self) -> str:
        return str(self.table().round(4).to_html(index=False))
