"""What a study asks and what epsilon means, in plain words."""

from binascii import hexlify
from math import exp, floor, log10

from ldp_client.mechanisms import mechanisms_of
from ldp_client.mechanisms.base import rounded_up
from ldp_client.words.priors import prior_lines
from ldp_client.words.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.documents.study import Field, Question, Study


# What a division of floats may lose; and the digits that privacy is shown with.
ROUNDING = 1e-12
DIGITS = 12
# Above it a report nearly is the answer: 99.97 % sure at 8.
HARDLY_PRIVATE = 8
# So many labels are shown to a person.
MOST_CHOICES = 50


def odds(epsilon: float, delta: float = 0.0) -> str:
    """What epsilon (nats) and delta (probability) mean to a person, as odds."""
    factor, likely, exception = _factors(epsilon, delta)
    return (
        f"Whatever was answered, any report is at most {factor} times as likely as with any other answer: "
        f"someone who thought two answers equally likely before seeing the report can be at most "
        f"{likely} sure of one of them after.{exception}"
    )


def record_odds(epsilon: float, delta: float = 0.0) -> str:
    """The same of a data holder's report, whose epsilon is for each record of the table."""
    factor, likely, exception = _factors(epsilon, delta)
    return (
        f"Whatever one record of the table holds, any report is at most {factor} times as likely as with any "
        f"other record in its place: someone who knows all other records, and thought two contents of this "
        f"one equally likely before seeing the report, can be at most {likely} sure of one of them "
        f"after.{exception}"
    )


def sum_odds(epsilon: float, delta: float = 0.0) -> str:
    """The same of a secure sum, after what holds if its nodes are one party."""
    factor, likely, exception = _factors(epsilon, delta)
    return (
        f"All nodes together can read every answer exactly. While one of them keeps its shares to itself: "
        f"whatever one device answered, any sum over the devices is at most {factor} times as likely as with "
        f"any other answer of it: someone who knows all other answers, and thought two of this one equally "
        f"likely before seeing the sum, can be at most {likely} sure of one of them after.{exception}"
    )


def odds_of(study: "Study", epsilon: float, delta: float = 0.0) -> str:
    """`odds`, `record_odds` where data holders answer, or `sum_odds` where only a sum is seen."""
    if study.route is not None:
        return sum_odds(epsilon, delta)
    return (record_odds if study.unit == "holder" else odds)(epsilon, delta)


def _factors(epsilon: float, delta: float) -> "tuple[str, str, str]":
    factor = exp(epsilon)
    shown = rounded_up(factor, 3 if factor < 1000 else 2)
    share = min(100 * factor / (1 + factor), 100.0)
    exception = f" Both hold up to an added probability of 1 in {_count(1 / delta)}." if delta else ""
    return shown, f"{rounded_up(share, 3 if share < 99 else 4)} %", exception


def _count(value: float) -> str:
    """The whole part of a number, or one digit of a large one: never more than it is."""
    value *= 1 + ROUNDING
    if value < 1e10:
        return f"{int(value):,}"
    nearest, digit = float(f"{value:.0e}"), 10.0 ** floor(log10(value))
    return f"{nearest if nearest <= value else nearest - digit:.0e}"


def describe(study: "Study") -> "list[str]":
    """Lines that say what the study asks and what its privacy is."""
    days = f"{study.opens or 'any time'} to {study.closes or 'any time'}"
    lines = [
        *_route(study),
        f"{visible(study.title)} ({study.id}, version {study.version})",
        *([f"purpose: {visible(study.purpose)}"] if study.purpose else []),
        f"open: {days}",
        f"digest: {study.digest}",
        *_unit(study),
    ]
    mechanisms = mechanisms_of(study)
    for question in study.questions:
        mechanism = mechanisms[question.id]
        privacy = mechanism.privacy
        delta = f", delta {rounded_up(float(privacy.delta), DIGITS)}" if float(privacy.delta) else ""
        lines += [
            "",
            f"{question.id}: {visible(question.text or question.ask)}",
            f"  answers: {_answers(question)}",
            f"  {mechanism.name}: true epsilon {rounded_up(float(privacy.epsilon), DIGITS)}{delta}",
            f"  {mechanism.in_words()}",
            f"  {odds_of(study, float(privacy.epsilon), float(privacy.delta))}",
            *[f"  prior: {line}" for line in prior_lines(question.model.prior)],
        ]
    return [*lines, "", _total(study)]


def _answers(question: "Question") -> str:
    """What a person can answer: bounds, choices, or the fields of a record."""
    if question.response is not None:
        return ", ".join(
            [f"{field.id} {_bounds(field)}" for field in (*question.features, question.response)]
        )
    if not question.choices:
        return _bounds(question)
    if question.numbered:
        return f"a whole number from 0 to {len(question.choices) - 1}"
    shown = [visible(str(label)) for label in question.choices[:MOST_CHOICES]]
    more = len(question.choices) - len(shown)
    return " | ".join(shown) + (f" | and {more} more" if more else "")


def _bounds(asked: "Question | Field") -> str:
    if asked.bounds is None:
        return "yes or no"
    return f"from {asked.bounds[0]} to {asked.bounds[1]}"


def warnings_of(study: "Study") -> "list[str]":
    """A line for each question whose noise hides hardly anything, with how sure somebody can be."""
    lines = []
    for name, mechanism in mechanisms_of(study).items():
        epsilon = float(mechanism.privacy.epsilon)
        if epsilon > HARDLY_PRIVATE:
            _, likely, _ = _factors(epsilon, 0.0)
            lines.append(
                f"warning: {name}: epsilon {rounded_up(epsilon, 4)} is hardly any privacy: who "
                f"thought two answers equally likely before can be {likely} sure of the true one after. "
                f"1 is usual, {HARDLY_PRIVATE} the most that protects at all"
            )
    return lines


def _unit(study: "Study") -> "list[str]":
    if study.unit != "holder":
        return []
    return [
        "for data holders: each answers once, with its table of many records; epsilon is for each record,",
        "m records of one person are protected with m times epsilon, in one table or in several",
    ]


def _route(study: "Study") -> "list[str]":
    route = study.route
    if route is None:
        return []
    return [
        f"IF THE {len(route.nodes)} NODES BELOW ARE ONE PARTY, OR WORK TOGETHER, THEY READ EVERY ANSWER",
        "EXACTLY: what is said here of epsilon then does not hold towards them. A device sends them shares",
        "only where its owner has named each of them, with its keys, as one that would not.",
        *[f"  {node.url}#{hexlify(node.sealing_key + node.signing_key).decode()}" for node in route.nodes],
        f"Otherwise epsilon is that of a sum over at least {route.fewest} devices, while of these at most",
        f"{route.tolerate} cheat or drop out. Whoever hands out the invitations decides who they are.",
        "",
    ]


def _total(study: "Study") -> str:
    epsilon = f"epsilon {rounded_up(float(study.epsilon), DIGITS)}"
    delta = f", delta {rounded_up(float(study.delta), DIGITS)}" if float(study.delta) else ""
    if study.ask_one:
        return (
            f"each device answers one of the {len(study.questions)} questions, drawn at random"
            f"{_drawn_in_words(study, f'{epsilon}{delta}')}"
        )
    return f"all {len(study.questions)} questions together: {epsilon}{delta} (their sum)"


def _drawn_in_words(study: "Study", cost: str) -> str:
    repeated = sum([question.repeats for question in study.questions])
    if not repeated:
        return f": {cost} (the largest of them)"
    others = " and the largest of the others" if repeated < len(study.questions) else ""
    return (
        f" in each version: {cost} (the sum of the memoized ones{others}: "
        f"over all versions, a device may come to answer so many)"
    )
