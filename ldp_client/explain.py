"""Describe a study's questions, its mechanisms and its epsilon in a natural language.

The key of a mechanism's sentence is "mechanism." and its name. The sentence's facts are the mechanism's
attributes; FACTS computes all other facts.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil, exp, floor, log, log10
from typing import Any

from ldp_client.answering import padding_of
from ldp_client.core.quantise import UNIT
from ldp_client.documents.public import PublicField
from ldp_client.documents.question import Field, Question
from ldp_client.documents.report import ID_BYTES, Report
from ldp_client.documents.study import Study
from ldp_client.mechanisms import Mechanism, mechanisms_of
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.words.text import ENGLISH, Words, plain, rounded_up, visible

Facts = Callable[[Any, Words], dict[str, Any]]


# Tolerance for the rounding error of a float division.
ROUNDING = 1e-12
# Larger numbers are written with an exponent.
MOST_WRITTEN = 1e9
# From this epsilon on, an attacker can be 100 % sure.
CERTAIN = 100.0
# The most labels that are shown to a person.
MOST_CHOICES = 50
# People expected in a cell. If there are fewer, its members can hardly hide among others.
FEW_PEOPLE = 20


def odds(epsilon: float, delta: float = 0.0, words: Words = ENGLISH, unit: str = "person") -> str:
    """Explain epsilon (nats) and delta (probability) to a person, as odds.

    unit: "person", a "holder" of records, or one device of a "sum".
    """
    factor, likely = factors(epsilon, words)
    text = words.say(f"odds.{unit}", factor=words.number(factor), likely=likely)
    return f"{text} {words.say('odds.exception', count=words.number(_count(1 / delta)))}" if delta else text


def odds_of(study: Study, epsilon: float, delta: float = 0.0, words: Words = ENGLISH) -> str:
    """Explain the odds for this study's unit: a person, a holder's record, or one device of a secure sum."""
    return odds(epsilon, delta, words, study.respondent if study.protocol is None else "sum")


def factors(epsilon: float, words: Words = ENGLISH) -> tuple[str, str]:
    """Return, as text, the likelihood ratio and how sure an attacker can be."""
    if epsilon > CERTAIN:
        # A power of ten that is not below it: exp overflows above 709.
        return f"1e+{ceil(epsilon / log(10))}", words.percent("100")
    factor = exp(epsilon)
    share = min(100 * factor / (1 + factor), 100.0)
    likelier = rounded_up(factor, 3 if factor < 1000 else 2)
    if 1000 <= factor < MOST_WRITTEN:
        likelier = f"{float(likelier):,.0f}"
    return likelier, words.percent(rounded_up(share, 3 if share < 99 else 4))


def _count(value: float) -> str:
    """Return a number rounded down, as text: to an integer, or to one digit if it is large."""
    value *= 1 + ROUNDING
    if value < 1e10:
        return f"{int(value):,}"
    nearest, digit = float(f"{value:.0e}"), 10.0 ** floor(log10(value))
    return f"{nearest if nearest <= value else nearest - digit:.0e}"


def describe(study: Study, words: Words = ENGLISH) -> list[str]:
    """Describe a study for a participant: its questions, its owner, and what its reports can reveal.

    Args:
        study: the study.
        words: the sentences of a language, by default English.

    Returns:
        Lines of text. Control characters from the study's author are made harmless to terminals.
    """
    # 1. The study. Whoever runs the nodes of a secure sum comes first.
    lines, any_time = [], words.say("study.any_time")
    if study.protocol is not None:
        nodes, devices = study.protocol.nodes, study.protocol.min_devices
        lines += words.say("study.nodes", nodes=len(nodes)).split("\n")
        lines += [f"  {node.url}#{(node.sealing_key + node.signing_key).hex()}" for node in nodes]
        lines += words.say("study.sum", fewest=devices, max_faulty=study.protocol.max_faulty).split("\n")
        lines.append("")
    lines += [
        words.say("study.title", title=visible(study.title), id=study.id, version=study.version),
        *([words.say("study.purpose", purpose=visible(study.purpose))] if study.purpose else []),
        *who_asks(study, words),
        words.say("study.open", opens=study.opens or any_time, closes=study.closes or any_time),
        words.say("study.digest", digest=study.digest),
        *([words.say("study.languages", languages=", ".join(study.languages))] if study.languages else []),
        *(words.say("study.holders").split("\n") if study.respondent == "holder" else []),
        *public_lines(study, words),
        *channel_lines(study, words),
        *_sections(study, words),
    ]
    # 2. Its questions.
    mechanisms = mechanisms_of(study)
    for question in study.questions:
        mechanism, text = mechanisms[question.id], visible(question.full_text or question.ask)
        epsilon, delta = float(mechanism.privacy.epsilon), float(mechanism.privacy.delta)
        cost = _cost(epsilon, delta, words)
        lines += [
            "",
            words.say("study.question", id=question.id, text=text),
            "  " + words.say("study.answers", answers=answers_in_words(question, words)),
            "  " + words.say("study.privacy", name=question.mechanism.name, cost=cost),
            "  " + in_words(mechanism, words),
            "  " + odds_of(study, epsilon, delta, words),
        ]
    # 3. What they cost together.
    repeated = sum([question.repeats for question in study.questions])
    key = "study.total" if len(study.questions) > 1 else "study.total_of_one"
    if study.sample_one_question:
        key = "study.one_drawn"
        if repeated:
            key += "_mixed" if repeated < len(study.questions) else "_each_version"
    cost = _cost(float(study.epsilon), float(study.delta), words)
    return [*lines, "", words.say(key, questions=len(study.questions), cost=cost)]


def _sections(study: Study, words: Words) -> list[str]:
    lines = [words.say("study.sections", count=len(study.sections))] if study.sections else []
    for section in study.sections:
        facts = {"title": visible(section.title), "questions": ", ".join(section.questions)}
        key = "study.section"
        if section.any_of:
            key = "study.list"
            costs = [study.question(name).mechanism.epsilon for name in section.questions]
            facts["epsilon"] = rounded_up(float(sum(costs, Fraction(0))))
        lines.append(words.say(key, **facts))
    return lines


def who_asks(study: Study, words: Words = ENGLISH) -> list[str]:
    """Return lines that name the owner and how long reports are kept, as far as the study states them."""
    lines = []
    for name in ("owner", "contact", "ethics", "consent"):
        stated = getattr(study, name)
        lines += [words.say(f"study.{name}", **{name: visible(stated)})] if stated else []
    return lines + kept_in_words(study, words)


def kept_in_words(study: Study, words: Words = ENGLISH) -> list[str]:
    """Return a line about how long reports are kept, if the study states it."""
    key = "study.kept_after" if study.closes else "study.kept_each"
    days = study.retention_days
    return [] if days is None else [words.say(key, count=days, closes=study.closes)]


def facts_of(study: Study) -> dict[str, Any]:
    """Return a study's privacy parameters for programs, as a JSON object.

    A question's ε and δ are its mechanism's exact loss. The study's ε and δ are the budget that it spends.
    """
    mechanisms = mechanisms_of(study)
    entries = []
    for question in study.questions:
        privacy = mechanisms[question.id].privacy
        entry = {"id": question.id, "ask": question.ask, "mechanism": mechanisms[question.id].name}
        entries.append({**entry, "epsilon": float(privacy.epsilon), "delta": float(privacy.delta)})
    return {
        "study": study.id,
        "version": study.version,
        "digest": study.digest,
        "epsilon": float(study.epsilon),
        "delta": float(study.delta),
        "questions": entries,
    }


def _cost(epsilon: float, delta: float, words: Words) -> str:
    key = "study.epsilon_delta" if delta else "study.epsilon"
    return words.say(key, epsilon=rounded_up(epsilon), delta=rounded_up(delta) if delta else "")


def answers_in_words(question: Question, words: Words = ENGLISH) -> str:
    """Describe the possible answers: bounds, choices, or the fields of a record."""
    if question.response is not None:
        answers = ", ".join([f"{_named(field)} {_field(field, words)}" for field in question.fields])
    elif not question.choices:
        answers = _bounds(question, words)
    elif question.numbered:
        answers = words.say("study.whole_number", largest=len(question.choices) - 1)
    else:
        answers = _labels(question.choices, words)
    return words.say("study.refusal", answers=answers) if question.refusal else answers


def _labels(choices: Sequence[Any], words: Words) -> str:
    """Return the labels of a choice, or the first of many."""
    shown, more = [visible(str(label)) for label in choices[:MOST_CHOICES]], len(choices) - MOST_CHOICES
    return " | ".join([*shown, words.say("study.more_choices", more=more)] if more > 0 else shown)


def _named(field: Field | PublicField) -> str:
    return f"{field.id} ({visible(field.text)})" if field.text else field.id


def _field(field: Field, words: Words) -> str:
    if field.choices:
        return " | ".join([visible(label) for label in field.choices])
    bounds = _bounds(field, words)
    cuts = ", ".join([str(cut) for cut in field.cuts])
    return words.say("study.cuts", bounds=bounds, cuts=cuts) if cuts else bounds


def _bounds(asked: Question | Field, words: Words) -> str:
    if asked.bounds is None:
        return words.say("study.yes_or_no")
    found = words.say("study.bounds", low=asked.bounds[0], high=asked.bounds[1])
    return f"{found} ({visible(asked.unit)})" if asked.unit else found


def public_lines(study: Study, words: Words = ENGLISH) -> list[str]:
    """Return a line for each public field, which states that it is sent as it is; [] without such fields."""
    lines = []
    for field in study.public:
        key = "public.ticket" if field.from_ticket else "public.field"
        lines += ["  " + words.say(key, field=_named(field), values=values_in_words(field, words))]
    return [words.say("public.head"), *lines, words.say("public.means")] if lines else []


def values_in_words(field: PublicField, words: Words = ENGLISH) -> str:
    """Return the values that a public field may have, in words."""
    if field.bounds is not None:
        return words.say("public.number", low=field.bounds[0], high=field.bounds[1], step=field.step)
    return words.say("public.one_of", choices=_labels(field.choices, words))


def cells_in_words(study: Study, people: int | None, words: Words = ENGLISH) -> str:
    """Return how many combinations of public values expect few people, and what that means.

    people: the planned number of participants, None if it is not stated.
    """
    if not study.public:
        return words.say("public.none")
    cells: dict[str, Any] = {"cells": f"{study.cells:,}", "few": FEW_PEOPLE}
    if people is None:
        return words.say("public.cells", **cells)
    under = study.cells if people < FEW_PEOPLE * study.cells else 0
    facts = {"people": f"{people:,}", "each": f"{people / study.cells:.3g}", "under": f"{under:,}"}
    # Only people // FEW_PEOPLE cells can reach FEW_PEOPLE, however the people are spread.
    least = max(study.cells - people // FEW_PEOPLE, 0)
    return words.say("public.people", least=f"{least:,}", **cells, **facts)


def channel_lines(study: Study, words: Words = ENGLISH) -> list[str]:
    """Return lines about how reports leave, [] if the study does not state it."""
    channel = study.channel
    if channel is None:
        return []
    lines = [words.say("channel.head"), "  " + words.say("channel.batches", count=channel.hours)]
    if channel.tickets is None:
        return [*lines, "  " + words.say("channel.direct")]
    lines.append("  " + words.say("channel.tickets", issuer=visible(channel.tickets.issuer)))
    if study.strata > 1:
        keys = len(channel.tickets.keys)
        key = "channel.strata" if keys == study.strata else "channel.some_strata"
        lines.append("  " + words.say(key, keys=keys, strata=f"{study.strata:,}"))
    return lines


def report_size(study: Study, carried: Sequence[PublicField] | None = None) -> int:
    """Return the bytes of each report, the same for all answers. The study has no protocol.

    carried: the public fields that a report carries, None for all.
    """
    mechanisms = mechanisms_of(study)
    names = list(mechanisms)[:1] if study.sample_one_question else list(mechanisms)
    payloads = {name: bytes(mechanisms[name].payload_size) for name in names}
    public = {field.id: field.value(0) for field in (study.public if carried is None else carried)}
    padding = padding_of(study, mechanisms, payloads, public)
    head = ("0" * 2 * ID_BYTES, study.id, study.version, study.digest)
    return len(Report(*head, payloads, padding, public=public).to_json().encode())


def in_words(mechanism: Mechanism, words: Words = ENGLISH) -> str:
    """Describe what the mechanism does to an answer.

    Args:
        mechanism: the mechanism of one question.
        words: the language.

    Returns:
        One or more sentences, with the mechanism's probabilities and the size of its noise.

    Raises:
        KeyError: the language has no sentence for this mechanism or its base class.
    """
    if mechanism.name.startswith("table_"):
        return " ".join(_table_sentences(mechanism, words))
    if (number := getattr(mechanism, "number", None)) is not None:
        return f"{in_words(number, words)} {words.say_of('mechanism.refusable', _known(mechanism, words))}"
    facts = _known(mechanism, words)
    kind = facts.get("kind", "")
    key = f"mechanism.{mechanism.name}{kind}"
    if isinstance(mechanism, ChoiceMechanism) and key not in words.sentences("mechanism."):
        key = "mechanism.supports"
    return words.say_of(key, facts)


class _Known(dict):  # type: ignore[type-arg]
    """Facts, with the mechanism's attributes as a fallback; exact attributes become floats for formatting."""

    def __init__(self, mechanism: Mechanism, facts: Mapping[str, Any]) -> None:
        super().__init__(facts)
        self._mechanism = mechanism

    def __missing__(self, name: str) -> Any:
        value = getattr(self._mechanism, name)
        return float(value) if isinstance(value, Fraction) else value


def _known(mechanism: Mechanism, words: Words) -> _Known:
    return _Known(mechanism, facts(mechanism, words) if (facts := FACTS.get(mechanism.name)) else {})


def _number(mechanism: Any, words: Words) -> dict[str, Any]:
    low, high = mechanism.bounds
    return {"size": words.number(plain((float(high) - float(low)) * mechanism.scale / mechanism.levels, 4))}


def _sampled(mechanism: Any, _: Words) -> dict[str, Any]:
    kind = ".levels" if any(mechanism.codes) else ""
    others = mechanism.patterns - 1
    return {
        "products": len(mechanism.coordinates),
        "kind": kind + (".several" if mechanism.signs > 1 else ""),
        "others": others,
        "q": (1 - float(mechanism.p)) / others,
    }


def _memoized(mechanism: Any, words: Words) -> dict[str, Any]:
    first = mechanism.first
    facts = {"choices": first.choices, "kept_p": float(first.p), "kept_q": float(first.q)}
    kept = words.say_of(f"mechanism.memoized.{mechanism.of}", facts)
    return {"kept": kept, "growth": words.number(rounded_up(exp(float(mechanism.report_privacy.epsilon)), 3))}


def _summed(mechanism: Any, words: Words) -> dict[str, Any]:
    facts = {"size": mechanism.size}
    if mechanism.statistic == "record":
        facts["norm"] = mechanism.radius / UNIT
    if mechanism.statistic == "marginals":
        facts["fields"] = len(mechanism.fields)
    return {"what": words.say_of(f"mechanism.summed_gaussian.{mechanism.statistic}", facts)}


# Computes the facts of a sentence that are not attributes of the mechanism, by the mechanism's name.
FACTS: dict[str, Facts] = {
    "laplace": _number,
    "gaussian": _number,
    "subset_selection": lambda mechanism, _: {"count": mechanism.size},
    "hadamard": lambda mechanism, _: {"sharing": 2 * mechanism.blocks},
    "gaussian_statistics": lambda mechanism, _: {
        "norm": mechanism.radius / UNIT,
        "products": len(mechanism.coordinates),
    },
    "gaussian_record": lambda mechanism, _: {
        "norm": mechanism.radius / mechanism.grid,
        "kind": ".yes_no" if mechanism.binary else ".number",
    },
    "sampled_products": _sampled,
    "memoized": _memoized,
    "summed_gaussian": _summed,
}


def _table_sentences(mechanism: Any, words: Words) -> list[str]:
    """Describe the clipping, the grouping, the sums and their noise."""
    lines = [words.say("table.clipping", norm=mechanism.radius / UNIT)]
    if mechanism.average > 1:
        lines += [words.say("table.groups", average=mechanism.average)]
    sums = {"products": len(mechanism.coordinates), "noise": _range(mechanism.noise_scale, words)}
    lines += [words.say_of(f"table.sums.{mechanism.law}", sums)]
    if mechanism.products:
        powers = "table.powers.three_and_four" if mechanism.intercept else "table.powers.four"
        noise = _range(mechanism.power_noise_scale, words)
        lines += [words.say(powers, powers=len(mechanism.products), power_noise=noise)]
    sd = mechanism.count_noise_sd
    lines += [words.say("table.count.noisy" if sd else "table.count.public", count_noise_sd=sd)]
    return lines


def _range(numbers: list[float], words: Words) -> str:
    low, high = f"{min(numbers):.4g}", f"{max(numbers):.4g}"
    return low if low == high else words.say("range", low=low, high=high)
