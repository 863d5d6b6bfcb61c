"""The payloads and ids of whole reports, however they were made: the law of each question, and independence.

People answer differently here, each by an object and random bytes that all reports of a path share. So what
goes wrong where reports are put together shows, with mechanisms that are sound by themselves.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from ldp_client.audit.findings import Check
from ldp_client.audit.views import Batch
from ldp_client.documents.errors import ReportError
from ldp_client.documents.report import Report
from ldp_client.documents.study import Study
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.sampled_products import SampledProducts
from tests.privacy.checks.columns import noise_columns, not_held
from tests.privacy.checks.products import product_checks
from tests.privacy.checks.reports import WIDE_LIMIT
from tests.privacy.checks.surprise import Column, count_score, lag_score, pair_score

SampleChecks = Callable[..., list[Check]]


# Of fewer reports of one answer the law by itself says nothing.
FEWEST = 40
ID_BITS = 128
SHARED = "questions and people do not share noise"
IDS = "a report's id tells no answer"


class Told:
    """What one question's payloads say: by report, {place of the report: (answer, payload)}."""

    def __init__(self, mechanism: Any, rows: dict[int, tuple[Any, bytes]]) -> None:
        self.mechanism = mechanism
        self.rows = rows
        self.groups: dict[str, list[int]] = defaultdict(list)
        for place, (answer, _) in rows.items():
            self.groups[repr(answer)].append(place)
        # What noise did, in the reports' order.
        self.columns = noise_columns(
            mechanism, [answer for answer, _ in rows.values()], [payload for _, payload in rows.values()]
        )

    def payloads(self, places: list[int]) -> list[bytes]:
        return [self.rows[place][1] for place in places]

    def answer_of(self, places: list[int]) -> Any:
        return self.rows[places[0]][0]

    def supports(self) -> list[bool]:
        """Whether each report of a choice supports its own."""
        own = {key: self.mechanism.quantise(self.answer_of(places)) for key, places in self.groups.items()}
        return [
            self.mechanism.supported(payload, own[repr(answer)]) for answer, payload in self.rows.values()
        ]


def payload_checks(
    study: Study,
    mechanisms: dict[str, Any],
    told: list[dict[str, Any]],
    texts: list[str],
    sample_checks: SampleChecks,
) -> list[Check]:
    """Hold reports that one path made to the law of each question, to each other, and their ids to both.

    told: what each person answered. texts: their reports, in the same order. sample_checks: (mechanism,
    answer, batch) → what reports of one answer must be like.
    """
    try:
        reports = [Report.from_json(text) for text in texts]
        questions = {name: _told(mechanisms[name], name, told, reports) for name in mechanisms}
    except (ReportError, LookupError) as error:
        return [Check("whole reports follow the law", False, f"not a report: {error}")]
    unknown = [name for name, one in questions.items() if one.rows and not one.columns]
    checks = [_law(study, questions, sample_checks), _apart(questions, not study.sample_one_question)]
    checks += [_ids(questions, reports), *not_held(SHARED, unknown), *not_held(IDS, unknown)]
    return checks


def _told(mechanism: Any, name: str, told: list[dict[str, Any]], reports: list[Report]) -> Told:
    rows = {}
    for place, (answers, report) in enumerate(zip(told, reports)):
        if name in report.payloads:
            mechanism.check(report.payloads[name])
            rows[place] = (answers[name], report.payloads[name])
    return Told(mechanism, rows)


def _law(study: Study, questions: dict[str, Told], sample_checks: SampleChecks) -> Check:
    """Reports of each answer by what belongs to that; and of choices, how often they support their own."""
    wrong, worst = "", 0.0
    for name, told in questions.items():
        for check in _checks_of(told, sample_checks):
            if not check.passed:
                wrong = wrong or f"{name}: {check.name}: {check.detail}"
        if isinstance(told.mechanism, ChoiceMechanism):
            worst = max(worst, *_support_scores(told))
        if study.sample_one_question:
            everybody = sum([len(one.rows) for one in questions.values()])
            worst = max(worst, count_score(len(told.rows), everybody, 1 / len(questions)))
    if worst >= WIDE_LIMIT:
        wrong = wrong or "how often reports support their own answer, or are about a question"
    reports = max([len(told.rows) for told in questions.values()])
    detail = f"{reports} reports; counts at most {worst:.1f} standard errors off"
    return Check("whole reports follow the law", not wrong, f"{wrong}; {detail}" if wrong else detail)


def _checks_of(told: Told, sample_checks: SampleChecks) -> Iterator[Check]:
    if isinstance(told.mechanism, SampledProducts):
        if told.rows:
            records = [told.mechanism.quantise(answer) for answer, _ in told.rows.values()]
            yield from product_checks(told.mechanism, records, [payload for _, payload in told.rows.values()])
        return
    for places in told.groups.values():
        if len(places) >= FEWEST:
            batch = Batch(told.payloads(places), told.mechanism.words)
            yield from sample_checks(told.mechanism, told.answer_of(places), batch)


def _support_scores(told: Told) -> Iterator[float]:
    """Of all answers together and of each: of the own choice, and of the next one."""
    mechanism = told.mechanism
    yield 0.0
    if told.rows:
        yield count_score(sum(told.supports()), len(told.rows), float(mechanism.p))
    for places in told.groups.values():
        own = mechanism.quantise(told.answer_of(places))
        for index in (own, (own + 1) % mechanism.choices):
            seen = sum([mechanism.supported(payload, index) for payload in told.payloads(places)])
            yield count_score(seen, len(places), float(mechanism.support_probability(own, index)))


def _apart(questions: dict[str, Told], all_asked: bool) -> Check:
    """Noise of people who follow each other, and if all are asked of two questions, is independent.

    Signs of one record are held together, and against the next people's, by their law.
    """
    columns = [(name, column) for name, told in questions.items() for column in told.columns]
    found = []
    for place, (name, column) in enumerate(columns):
        if not column.shares and len(column.values) >= FEWEST:
            found += [(_lagged(column, lag), f"{name} of two people") for lag in (1, 2)]
        for other_name, other in columns[:place] if all_asked else []:
            if name != other_name or not isinstance(questions[name].mechanism, SampledProducts):
                both = f"{name} and {other_name}"
                found += [(pair_score(column, other), both), (pair_score(column, other, 1), both)]
                found += [(pair_score(other, column, 1), both)]
    if not found:
        return Check(SHARED, True, "nothing to compare", made=False)
    worst, where = max(found)
    return Check(SHARED, worst < WIDE_LIMIT, f"largest correlation {worst:.1f} standard errors ({where})")


def _lagged(column: Column, lag: int) -> float:
    """Of a column with itself, so many people later."""
    return pair_score(column, column, lag) if column.share is None else lag_score(column, lag)


def _ids(questions: dict[str, Told], reports: list[Report]) -> Check:
    """No bit of an id depends on an answer, or on what noise did to it; and no id comes again."""
    bits = [int(report.id, 16) for report in reports]
    worst = max([_bit_score([bits[place] for place in some]) for some in _kinds(questions)])
    again = len(bits) - len(set(bits))
    return Check(
        IDS,
        worst < WIDE_LIMIT and not again,
        f"{again} ids come again; bits at most {worst:.1f} standard errors off",
    )


def _kinds(questions: dict[str, Told]) -> Iterator[list[int]]:
    """Places of the reports of one answer, of noise on one side, and of both."""
    for told in questions.values():
        yield from told.groups.values()
        for column in told.columns:
            sides: dict[Any, list[int]] = defaultdict(list)
            for (place, (answer, _)), value in zip(told.rows.items(), column.values):
                sides[value > 0].append(place)
                sides[value > 0, repr(answer)].append(place)
            yield from sides.values()


def _bit_score(ids: list[int]) -> float:
    digits = "".join([f"{one:0{ID_BITS}b}" for one in ids])
    counts = [digits[bit::ID_BITS].count("1") for bit in range(ID_BITS)]
    return max([count_score(count, len(ids), 0.5) for count in counts])
