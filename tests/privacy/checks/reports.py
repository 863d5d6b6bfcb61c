"""Whole reports and reports in bulk: questions do not meet there, and payloads alone tell of answers.

A report is put together again from its parts, each by a fresh mechanism on random bytes of its own. So
noise that two questions share, or that depends on another question's answer, shows on the first stream.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from ldp_client import answering
from ldp_client.audit.answers import Stream, answers_for, inside_answers, random_answers
from ldp_client.audit.findings import Check
from ldp_client.audit.views import Batch
from ldp_client.core.randomness import Source, uniform_below, urandom
from ldp_client.documents.errors import AnswerError
from ldp_client.documents.question import Question
from ldp_client.documents.report import Report
from ldp_client.documents.study import Study
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.memoized import Remembering
from ldp_client.mechanisms.sampled_products import SampledProducts
from tests.privacy.checks.columns import noise_columns, not_held, support_column
from tests.privacy.checks.noise import SIZE_LIMIT
from tests.privacy.checks.products import product_checks, rows_check
from tests.privacy.checks.surprise import Column, count_score, pair_score

Perturb = Callable[..., list[bytes]]
Mechanisms = dict[str, Any]
Answers = dict[str, Any]


STREAMS = 60
REPORTS = 3000
ROWS = 400
LABELS = 20
SCORES = 8
# Where thousands of scores are compared.
WIDE_LIMIT = SIZE_LIMIT + 1
SHARED = "questions do not share noise"


def possible_answers(mechanism: Any, question: Question) -> list[Any]:
    """Different answers to one question, its extremes among them, that it takes."""
    taken = []
    for answer in answers_for(question).values():
        try:
            mechanism.quantise(answer)
        except AnswerError:
            continue
        taken.append(answer)
    return taken


def answers_of_all_levels(mechanism: Any, question: Question) -> list[Any]:
    """Every level of each feature of sampled products; of choices all, or so many at even distances."""
    if isinstance(mechanism, SampledProducts):
        return random_answers(question)
    if isinstance(mechanism, ChoiceMechanism) and not mechanism.boolean:
        return list(mechanism.labels[:: 1 + (len(mechanism.labels) - 1) // LABELS])
    return possible_answers(mechanism, question)


def every_choice(mechanism: Any) -> Sequence[Any]:
    """All answers of a choice, a refusal too where it is one; of a yes/no as devices get them."""
    if not mechanism.boolean:
        return mechanism.labels  # type: ignore[no-any-return]
    return [False, True, None] if mechanism.refusal else [False, True]


def assembly_checks(study: Study, mechanisms: Mechanisms) -> Iterator[Check]:
    """Reports of the same random bytes and different answers, and reports of the real source."""
    answers = {
        question.id: answers_of_all_levels(mechanisms[question.id], question) for question in study.questions
    }
    pristine = deepcopy(mechanisms)
    wrong: dict[str, int] = {"parts": 0, "rest": 0, "bytes": 0}
    tried = 0
    for seed in range(STREAMS):
        base = {name: some[seed % len(some)] for name, some in answers.items()}
        one, taken = _report(study, mechanisms, base, seed)
        expected = _payloads(study, pristine, base, seed)
        wrong["parts"] += one.payloads != expected
        for name, some in answers.items():
            changed = {**base, name: some[(seed + 1) % len(some)]}
            other, taken_other = _report(study, mechanisms, changed, seed)
            tried += 1
            wrong["bytes"] += taken != taken_other
            wrong["rest"] += _rest(one, name) != _rest(other, name)
    yield Check(
        "each payload is its mechanism's on bytes of its own",
        not wrong["parts"],
        f"{wrong['parts']} of {STREAMS} reports differ from their parts",
    )
    yield Check(
        "only a question's own payload depends on its answer",
        not wrong["rest"],
        f"{wrong['rest']} of {tried} reports differ elsewhere: id, size, order, public values, a question",
    )
    yield Check(
        "reports take as many random bytes for all answers", not wrong["bytes"], f"{tried} pairs of reports"
    )
    if len(study.questions) > 1 and not study.sample_one_question:
        yield from _apart(study, mechanisms, {name: some[0] for name, some in answers.items()})


def _report(study: Study, mechanisms: Mechanisms, answers: Answers, seed: int) -> tuple[Report, int]:
    stream = Stream(seed)
    told = {**answers, **_public_answers(study)}
    return answering.perturb_answers(study, of_one_person(mechanisms), told, stream), stream.taken


def _public_answers(study: Study) -> Answers:
    """Public values, the same whatever was answered: nothing else may stand in their place."""
    return {field.id: field.value(0) for field in study.public}


def of_one_person(mechanisms: Mechanisms) -> Mechanisms:
    """Memoized mechanisms with a memory of their own, in which nothing is kept yet."""
    return {
        name: Remembering(mechanism, None) if hasattr(mechanism, "permanent") else mechanism
        for name, mechanism in mechanisms.items()
    }


def _payloads(study: Study, mechanisms: Mechanisms, answers: Answers, seed: int) -> dict[str, bytes]:
    """What the payloads must be: the questions in the study's order on one stream."""
    stream = Stream(seed)
    names = [question.id for question in study.questions]
    asked = [names[uniform_below(len(names), stream)]] if study.sample_one_question else names
    return {name: mechanisms[name].perturb(answers[name], stream) for name in asked}


def _rest(report: Report, name: str) -> tuple[Any, ...]:
    """All that may not depend on the answer to question `name`."""
    sizes = [(key, len(payload)) for key, payload in report.payloads.items()]
    others = [payload for key, payload in report.payloads.items() if key != name]
    return report.id, len(report.to_json()), report.padding, report.public, sizes, others


def _apart(study: Study, mechanisms: Mechanisms, answers: Answers) -> Iterator[Check]:
    """With the real source: two questions' noise in one report, or in neighbouring ones, is independent."""
    told = {**answers, **_public_answers(study)}
    reports = [answering.perturb_answers(study, of_one_person(mechanisms), told) for _ in range(REPORTS)]
    columns = [
        (name, column)
        for name in answers
        for column in _scores(mechanisms[name], answers[name], [report.payloads[name] for report in reports])
    ]
    worst, where, same = 0.0, "", 0
    for place, (name, column) in enumerate(columns):
        for other_name, other in columns[:place]:
            if name == other_name:
                continue
            for found in (pair_score(column, other), pair_score(column, other, 1)):
                worst, where = max((worst, where), (found, f"{name} and {other_name}"))
            if min(len(set(column.values)), len(set(other.values))) > REPORTS // 2:
                same = max(same, sum([abs(a) == abs(b) for a, b in zip(column.values, other.values)]))
    ids = len({report.id for report in reports})
    sizes = len({len(report.to_json()) for report in reports})
    good = worst < WIDE_LIMIT and same < 4 and ids == REPORTS and sizes == 1
    yield Check(
        SHARED,
        good,
        f"{REPORTS} reports, {ids} ids, {sizes} size; {same} times the same noise; largest correlation "
        f"{worst:.1f} standard errors ({where or 'nothing'})",
    )
    yield from not_held(SHARED, [name for name in answers if name not in dict(columns)])


def _scores(mechanism: Any, answer: Any, payloads: list[bytes]) -> list[Column]:
    """What noise did to reports of one answer; of a choice, to the others' supports as well."""
    columns = noise_columns(mechanism, [answer] * len(payloads), payloads, SCORES)
    if isinstance(mechanism, ChoiceMechanism):
        own = [mechanism.quantise(answer)] * len(payloads)
        others = [index for index in range(min(mechanism.choices, SCORES)) if index != own[0]]
        others = others[: SCORES - 1]
        columns += [support_column(mechanism, own, [index] * len(payloads), payloads) for index in others]
    return columns


def bulk_checks(
    mechanism: Any, question: Question, samples: int, sample_checks: Callable[..., list[Check]]
) -> list[Check]:
    """Reports of many answers at once: rows are apart, and follow the law of single reports.

    sample_checks: (mechanism, answer, batch) → what reports of one answer must be like.
    """
    try:
        from ldp_client.bulk.perturbing import randomise_many
        from ldp_client.bulk.quantising import quantise_many
    except ModuleNotFoundError:
        return [Check("in bulk", True, "NumPy is not installed", made=False)]

    def perturb(some: list[Any], random: Source = urandom, times: int = 1) -> list[bytes]:
        """As perturb_many, without its words about clipping; so many reports of answers quantised once."""
        rows = randomise_many(mechanism, [*quantise_many(mechanism, some)] * times, random)
        return [row.tobytes() for row in rows]

    answers = possible_answers(mechanism, question)
    checks = [*_rows_apart(perturb, answers), _columns_check(mechanism, question, quantise_many)]
    tried = [answers[0], answers[-1]]
    if isinstance(mechanism, SampledProducts):
        tried += inside_answers(question).values()
        records = random_answers(question, samples)
        checks += product_checks(mechanism, [mechanism.quantise(one) for one in records], perturb(records))
        checks.append(rows_check(mechanism, records[:ROWS], perturb))
    for answer in tried:
        checks += sample_checks(mechanism, answer, Batch(perturb([answer], times=samples), mechanism.words))
    if isinstance(mechanism, ChoiceMechanism):
        checks.append(_choices_in_bulk(mechanism, perturb, samples))
    kept: dict[str, Check] = {}
    for check in sorted(checks, key=lambda check: check.passed):
        kept.setdefault(f"in bulk: {check.name}", check)
    for name, check in kept.items():
        check.name = name
    return list(kept.values())


def _columns_check(mechanism: Any, question: Question, quantise_many: Callable[..., Any]) -> Check:
    """Answers that come as arrays, where all else here comes as a list: clipped and placed in another way."""
    import numpy as np

    drawn = question.ask in ("number", "record")
    answers = random_answers(question, ROWS) if drawn else answers_of_all_levels(mechanism, question)
    columns: Any = np.asarray(answers)
    if question.ask == "record":
        columns = {name: np.asarray([answer[name] for answer in answers]) for name in answers[0]}
    expected = [_integers(mechanism.quantise(answer)) for answer in answers]
    found = [_integers(one) for one in quantise_many(mechanism, columns)]
    wrong = abs(len(found) - len(expected)) + sum([one != other for one, other in zip(expected, found)])
    return Check(
        "columns give the integers of single answers", not wrong, f"{wrong} of {len(answers)} differ"
    )


def _integers(quantised: Any) -> list[int]:
    return [int(entry) for entry in (quantised if hasattr(quantised, "__len__") else [quantised])]


def _rows_apart(perturb: Perturb, answers: list[Any]) -> Iterator[Check]:
    """On the same random bytes an answer changes its own row alone, and not how many bytes are read."""
    people = [answers[(5 * place + place // 7) % len(answers)] for place in range(ROWS)]
    stream = Stream(1)
    expected = perturb(people, stream)
    differing = 0
    for row in range(0, ROWS, 40):
        others = list(people)
        others[row] = answers[(answers.index(people[row]) + 1) % len(answers)]
        again = Stream(1)
        found = perturb(others, again)
        changed = [place for place in range(ROWS) if found[place] != expected[place]]
        differing += changed not in ([], [row]) or again.taken != stream.taken
    yield Check("an answer changes its own row alone", not differing, f"{differing} of 10 changes did more")


def _choices_in_bulk(mechanism: Any, perturb: Perturb, samples: int) -> Check:
    """Every choice as often as the others: how often each is supported by its report."""
    count = mechanism.choices
    labels = every_choice(mechanism)
    step = 1 + count // max(1, min(3000, 2_000_000 // mechanism.payload_size // 60))
    places = list(range(0, count, step))
    each = max(60, 4 * samples // len(places))
    worst = 0.0
    for place in places:
        own = mechanism.quantise(labels[place])
        rows = perturb([labels[place]], times=each)
        seen = sum([mechanism.supported(row, own) for row in rows])
        worst = max(worst, count_score(seen, each, float(mechanism.p)))
    return Check(
        "every choice has its stated law",
        worst < WIDE_LIMIT,
        f"{len(places)} of {count} choices, {each} reports each; worst {worst:.1f} standard errors",
    )
