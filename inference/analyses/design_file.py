"""Read "ldpkit.design/1": how reports in each private column of a survey depend on the true answer."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from inference.analyses.channel import Channel, Weights, mixture, split
from inference.analyses.dice import BEHAVIOURS, NAMED
from ldp_client.documents.canonical import parse_json
from ldp_client.documents.errors import DocumentError
from ldp_client.documents.fields import Boolean, Checked, Constant, printable
from ldp_client.documents.shapes import Either, ListOf, Record, Tagged

FORMAT = "ldpkit.design/1"
MOST_BYTES = 10_000_000
MOST_ANSWERS, MOST_CARDS, MOST_DIGITS = 1000, 100, 100
# Common words for no, and for yes.
NO_YES = (("no", "n", "false", "f", "0"), ("yes", "y", "true", "t", "1"))
UNKNOWN = "unknown"
# A matrix is shown in fractions with at most this denominator.
MOST_DENOMINATOR = 1_000_000
TINY = 1e-12
Error = type[DocumentError]
# A known share, or an unknown one.
Share = Fraction | Weights


class DesignError(DocumentError):
    """A design document is not valid."""

    code = "design.invalid"
    kind = "design"


class _Probability:
    """A decimal or a fraction in a string: a JSON number would be binary."""

    def read(self, value: Any, path: str, error: Error) -> Fraction:
        text = value.strip() if isinstance(value, str) and len(value) <= MOST_DIGITS else ""
        try:
            # A power of ten may be a number that exhausts memory.
            number = Fraction("" if "e" in text.lower() else text)
        except (ValueError, ZeroDivisionError):
            number = Fraction(-1)
        if not 0 <= number <= 1:
            raise error(path, 'must be a probability in quotes, such as "0.25" or "1/6"')
        return number


class _Matrix:
    """A row of probabilities for each answer, which add up to 1."""

    def read(self, value: Any, path: str, error: Error) -> list[tuple[Fraction, ...]]:
        row = ListOf(_Probability(), 1, MOST_ANSWERS, repeats=True)
        rows = ListOf(row, 1, MOST_ANSWERS, repeats=True).read(value, path, error)
        for place, one in enumerate(rows):
            # Probabilities that only round to 1, such as three times 0.3333, must be stated as fractions.
            if sum(one) != 1:
                raise error(
                    f"{path}[{place}]", f"adds up to {float(sum(one)):.6g}, not to 1: state fractions"
                )
            if len(one) != len(rows[0]):
                raise error(f"{path}[{place}]", "must be as long as the first row")
        return list(rows)


class _Map:
    """An object with values of one shape under any names, at least `fewest`."""

    def __init__(self, item: Any, fewest: int = 0) -> None:
        self.item, self.fewest = item, fewest

    def read(self, value: Any, path: str, error: Error) -> dict[str, Any]:
        if not isinstance(value, dict) or len(value) < self.fewest:
            raise error(path, f"must be an object with {self.fewest} or more named values")
        return {name: self.item.read(one, f"{path}.{printable(name)}", error) for name, one in value.items()}


class _Label:
    """A text that is not blank, or a whole number."""

    def read(self, value: Any, path: str, error: Error) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise error(path, "must be a text that is not blank")
        return str(value).strip()


_NAME = Record({UNKNOWN: Checked(lambda name: str(name).isidentifier(), "must be letters, digits and _", {})})
_WEIGHTS = Either(
    lambda stated: _NAME if list(stated) == [UNKNOWN] else _Map(_Probability()), Constant(UNKNOWN)
)
_CARDS = Checked(
    lambda value: isinstance(value, str) and value.isdigit() and 1 <= int(value[:9]) <= MOST_CARDS,
    f"must be a whole number from 1 to {MOST_CARDS}, in quotes",
    {},
)
_ANY = Checked(lambda _value: True, "", {})


class _ShareOrName:
    """A probability, "unknown", or {"unknown": name}."""

    def read(self, value: Any, path: str, error: Error) -> Any:
        if value == UNKNOWN:
            return value
        return (_NAME if isinstance(value, dict) else _Probability()).read(value, path, error)


def _component(required: Mapping[str, Any], optional: Mapping[str, Any]) -> Either:
    """Return the shape of a matrix, a named design or a mixture, with people who behave otherwise.

    required: further fields. optional: further fields that may be missing.
    """

    def record(needed: Mapping[str, Any], also: Mapping[str, Any] | None = None) -> Record:
        behaviours = dict.fromkeys(BEHAVIOURS, _ShareOrName())
        return Record({**needed, **required}, {**(also or {}), **behaviours, **optional})

    named_designs = {
        name: record(
            {"design": Constant(name), **dict.fromkeys(named.needs, _Probability())},
            {**({"cards": _CARDS} if named.cards else {}), **dict.fromkeys(named.shares, _ShareOrName())},
        )
        for name, named in NAMED.items()
    }
    of_name = Tagged("design", named_designs)

    def shape(stated: Mapping[str, Any]) -> Any:
        if "matrix" in stated:
            return record({"matrix": _Matrix()})
        if "mixture" in stated:
            return record({"mixture": _Map(_component({}, {}), 2), "weights": _WEIGHTS})
        return of_name

    return Either(shape, of_name)


_LABELS = {
    "answers": ListOf(_Label(), 2, MOST_ANSWERS),
    "reports": ListOf(_Label(), 2, MOST_ANSWERS),
    "ordered": Boolean(),
}
_GROUPS = ListOf(_component({"rows": _Map(_Label())}, {}), 1, MOST_ANSWERS, repeats=True)
_COLUMN = Either(
    lambda stated: (
        Record({"matrices": _GROUPS}, {**dict.fromkeys(BEHAVIOURS, _ShareOrName()), **_LABELS})
        if "matrices" in stated
        else _component({}, _LABELS)
    ),
    Record({}),
)
_DESIGN = Record({"format": Constant(FORMAT), "columns": _Map(_COLUMN, 1)}, {"prior": _ANY, "title": _ANY})


@dataclass(frozen=True)
class Part:
    """A channel and its rows: {column: value}, {} for all rows."""

    rows: Mapping[str, str]
    channel: Channel
    words: str


@dataclass(frozen=True)
class ColumnDesign:
    """One private column. reports: the labels in the table, in the order of the matrix."""

    name: str
    answers: tuple[str, ...]
    reports: tuple[str, ...]
    parts: tuple[Part, ...]
    ordered: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Return a warning if a known matrix mostly pairs reports with answers of other names."""
        reports = [one.casefold() for one in self.reports]
        own = [reports.index(one.casefold()) for one in self.answers if one.casefold() in reports]
        for part in self.parts:
            likely = part.channel.chances[0, 0].argmax(axis=1).tolist()
            if part.channel.weights or len(own) < len(reports) or len(set(likely)) < len(likely):
                continue
            if likely != own:
                return (
                    f"{self.name}: its matrix gives most reports another name than their answers. If that is "
                    f"wrong, list reports in the order of its columns (now {', '.join(self.reports)}), and "
                    f"answers in the order of its rows (now {', '.join(self.answers)})",
                )
        return ()

    def weight_names(self) -> set[str]:
        """Return the names of unknown weights, and of the parameters that they have."""
        weights = [one for part in self.parts for one in part.channel.weights.values()]
        return {name for one in weights for name in (one.name, *one.names)}

    def in_words(self) -> list[str]:
        """Return the design as readable lines, with its matrix if that has no unknown weights."""
        lines = []
        for part in self.parts:
            which = ", ".join(f"{column} = {value}" for column, value in part.rows.items())
            lines.append(f"{self.name}{f' where {which}' if which else ''}: {part.words}")
            known = () if part.channel.weights else part.channel.chances[0, 0].tolist()
            for answer, row in zip(self.answers, known, strict=False):
                shown = [str(Fraction(chance).limit_denominator(MOST_DENOMINATOR)) for chance in row]
                chances = [f"{report} {chance}" for report, chance in zip(self.reports, shown, strict=True)]
                lines.append(f"  answer {answer}: report {', '.join(chances)}")
        return lines


@dataclass(frozen=True)
class Design:
    """columns: the private columns. priors: as stated, None without any. title: for people."""

    columns: tuple[ColumnDesign, ...]
    priors: Any
    title: str

    @property
    def grouping(self) -> list[str]:
        """Return the columns by which rows have their matrices."""
        return sorted({name for column in self.columns for part in column.parts for name in part.rows})

    def priors_of(self, columns: Collection[str]) -> Any:
        """Return the stated priors without those of the unknown weights of other columns."""
        others = {name for one in self.columns if one.name not in columns for name in one.weight_names()}
        if not isinstance(self.priors, Mapping):
            return self.priors
        return {name: prior for name, prior in self.priors.items() if name not in others}

    def in_words(self) -> list[str]:
        """Return the expanded design as readable lines."""
        return [line for column in self.columns for line in column.in_words()]


def read_design(text: str | bytes) -> Design:
    """Read and expand a design document. Raises DesignError that names the fault."""
    stated = _DESIGN.read(parse_json(text, DesignError, MOST_BYTES), "", DesignError)
    columns = tuple(_Column(name).design(one) for name, one in stated["columns"].items())
    return Design(columns, stated["prior"], str(stated["title"] or ""))


class _Column:
    """Expands the design of one column, in which unknown weights of one name are the same."""

    def __init__(self, name: str) -> None:
        self.name, self.path = name, f"columns.{printable(name)}"
        self._labels: dict[str, tuple[str, ...]] = {}

    def design(self, stated: Mapping[str, Any]) -> ColumnDesign:
        """Expand what was read of the column."""
        # 1. Its design for all rows, or for each group. Shares that are stated beside `matrices` are of all.
        parts = []
        for group in stated.get("matrices") or [{**stated, "rows": {}}]:
            channel, words = self._component(self.path, group)
            if "matrices" in stated:
                channel, words = self._behaving(self.path, stated, channel, words)
            parts.append(Part(group["rows"], channel, words))
        # 2. Labels: a named design has usual ones.
        answers, reports = stated["answers"], stated["reports"]
        if _is_named((stated.get("matrices") or [stated])[0]):
            answers = answers or ("no", "yes")
            _refuse_turned(self.path, answers, reports or ())
            reports = reports or tuple(map(str, range(parts[0].channel.shape[1])))
        for name, labels, place in (("answers", answers, 0), ("reports", reports, 1)):
            sizes = {part.channel.shape[place] for part in parts}
            if sizes != {len(labels or ())}:
                wanted = " or ".join(map(str, sorted(sizes)))
                raise DesignError(f"{self.path}.{name}", f"must have {wanted} entries, as the matrix has")
        # 3. The noise must carry information.
        for part in parts:
            if np.ptp(part.channel.chances, axis=2).max() < TINY:
                raise DesignError(self.path, "every answer gives the same reports: no report tells of it")
        return ColumnDesign(self.name, answers, reports, tuple(parts), bool(stated["ordered"]))

    def _component(self, path: str, stated: Mapping[str, Any]) -> tuple[Channel, str]:
        """Return the channel of a matrix, a named design or a mixture, and describe it."""
        if "matrix" in stated:
            channel, words = Channel.of(stated["matrix"]), "a matrix"
        elif "mixture" in stated:
            channel, words = self._mixture(path, stated)
        else:
            named = NAMED[stated["design"]]
            given = {name: stated[name] for name in (*named.needs, "cards") if stated.get(name)}
            given |= {name: self._share(path, name, stated[name] or UNKNOWN) for name in named.shares}
            if stated["design"] == "forced" and given["yes"] + given["no"] > 1:
                raise DesignError(path, "yes and no add up to more than 1")
            said = ", ".join(self._said(name, value) for name, value in given.items())
            channel, words = named.expand(given), f"{stated['design']}, {said} ({named.words})"
        return self._behaving(path, stated, channel, words)

    def _behaving(
        self, path: str, stated: Mapping[str, Any], dice: Channel, words: str
    ) -> tuple[Channel, str]:
        """Mix a design with the people who deny, say no or answer at random instead."""
        for name, behave in BEHAVIOURS.items():
            if stated.get(name) is not None:
                share = self._share(path, name, stated[name], dice)
                dice, words = split(share, behave(dice), dice), f"{words}, {self._said(name, share)}"
        return dice, words

    def _mixture(self, path: str, stated: Mapping[str, Any]) -> tuple[Channel, str]:
        labels, weights = tuple(stated["mixture"]), stated["weights"]
        parts = [self._component(f"{path}.mixture.{name}", one)[0] for name, one in stated["mixture"].items()]
        if len({part.shape for part in parts}) > 1:
            raise DesignError(path, "the designs of a mixture must have as many answers and reports each")
        if weights == UNKNOWN or list(weights) == [UNKNOWN]:
            unknown = self._unknown(path, "weights", weights, labels, *parts)
            return mixture(
                parts, unknown
            ), f"a mixture of {', '.join(labels)} with {self._said('weights', unknown)}"
        if set(weights) != set(labels) or sum(weights.values()) != 1:
            problem = f"must be of {', '.join(labels)} and add up to 1, as fractions where decimals do not"
            raise DesignError(f"{path}.weights", problem)
        words = ", ".join(self._said(name, weights[name]) for name in labels)
        return mixture(parts, [weights[name] for name in labels]), f"a mixture of {words}"

    def _share(self, path: str, key: str, value: Any, *inside: Channel) -> Share:
        """Return a known share, or an unknown share that no component of its mixture has."""
        return value if isinstance(value, Fraction) else self._unknown(path, key, value, (), *inside)

    def _unknown(self, path: str, key: str, value: Any, labels: tuple[str, ...], *inside: Channel) -> Weights:
        """Return unknown weights: "unknown" has the member's name, {"unknown": name} its own.

        Raises DesignError if they are inside themselves, or have other branches elsewhere.
        """
        name = key if value == UNKNOWN else value[UNKNOWN]
        weights = Weights(f"{self.name}_{name}", labels)
        taken = any(weights.name in one.weights for one in inside)
        if taken or self._labels.setdefault(name, labels) != labels:
            problem = f'two unknown shares are called {name}: give one another name, {{"unknown": name}}'
            raise DesignError(f"{path}.{key}", problem)
        return weights

    def _said(self, key: str, share: Any) -> str:
        """Describe a share: its number, or the name of an unknown one."""
        if not isinstance(share, Weights):
            return f"{key} = {share}"
        name = share.name.removeprefix(f"{self.name}_")
        return f"{key} {UNKNOWN}" if name == key else f"{key} {UNKNOWN}, called {name}"


def _is_named(stated: Mapping[str, Any]) -> bool:
    """Return True if a component has named designs alone. A stated matrix has other labels."""
    if "mixture" in stated:
        return all(map(_is_named, stated["mixture"].values()))
    return "design" in stated


def _refuse_turned(path: str, answers: Sequence[str], reports: Sequence[str]) -> None:
    """Raise DesignError if a named design lists yes before no: its rows are no, then yes."""
    for labels, what in ((answers, "answers"), (reports, "reports")):
        lower = [one.casefold() for one in labels]
        if any(lower == [yes, no] for no, yes in zip(*NO_YES, strict=True)):
            problem = f"must list no first, then yes, as named designs do: {', '.join(reversed(labels))}"
            raise DesignError(f"{path}.{what}", problem)
    if reports and list(reports) != list(answers) and set(reports) == set(answers):
        raise DesignError(f"{path}.reports", f"are in another order than answers ({', '.join(answers)})")
