"""Right sides as formulaic reads them, but that a minus must take away a term that is there.

Formulaic takes `ill ~ -age` and `ill ~ age - sex` without a word, as if the minus were not there.
"""

from __future__ import annotations

from typing import Any

from formulaic.parser import DefaultFormulaParser, DefaultOperatorResolver
from formulaic.parser.types import Factor, Operator


class _Strict(DefaultOperatorResolver):
    @property
    def operators(self) -> list[Any]:
        """Formulaic's, each minus in a stricter form."""
        others = [one for one in super().operators if one.symbol != "-"]
        common = {"precedence": 100}
        between = Operator("-", arity=2, associativity="left", to_terms=_less, **common)
        before = Operator("-", arity=1, associativity="right", fixity="prefix", to_terms=_negative, **common)
        return [*others, between, before]


class NothingToTakeAwayError(Exception):
    """A minus before a term that does not stand before it.

    term: as formulaic writes it. is_column: whether it is a column as it is.
    """

    def __init__(self, term: str, is_column: bool) -> None:
        super().__init__(term)
        self.term = term
        self.is_column = is_column

    def sentence(self, name: str) -> str:
        """What to do about it. name: of the term, as people wrote it."""
        if self.term == "1":
            return "takes away an intercept that is not there: write - 1 once, outside all brackets"
        # Of a text, a product or a call there is no negative that could stand in its place.
        other = f", or write I(-{name}) where {name} is a number" if self.is_column else ""
        return f"takes away {name}, which is no term before it: leave it out{other}"


def _less(before: Any, taken: Any) -> Any:
    for term in taken:
        if term not in before:
            methods = [factor.eval_method for factor in term.factors]
            raise NothingToTakeAwayError(str(term), methods == [Factor.EvalMethod.LOOKUP])
    return before - taken


def _negative(taken: Any) -> Any:
    return _less(type(taken)(), taken)


PARSER = DefaultFormulaParser(operator_resolver=_Strict())
