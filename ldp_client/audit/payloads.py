"""The payloads and ids of whole reports, however they were made: the law of each question, and independence.

People answer differently here, each by an object and random bytes that all reports of a path share. So what
goes wrong where reports are put together shows, with mechanisms that are sound by themselves.
"""

from collections import defaultdict

from ldp_client.audit.answers import SILENT, words_of
from ldp_client.audit.findings import Check
from ldp_client.audit.products import product_checks
from ldp_client.audit.reports import WIDE_LIMIT
from ldp_client.audit.surprise import Column, count_score, lag_score, pair_score
from ldp_client.audit.views import Batch
from ldp_client.documents.errors import ReportError
from ldp_client.documents.report import Report
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.sampled_products import SampledProducts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ldp_client.documents.study import Study

    SampleChecks = Callable[..., list[Check]]

# Of fewer reports of one answer the law by itself says nothing.
FEWEST = 40
# So many numbers of a payload are held against other questions.
WORDS = 4
ID_BITS = 128


class Told:
    """What one question's payloads say: by report, {place of the report: (answer, payload)}."""

    def __init__(self, mechanism: "Any", rows: "dict[int, tuple[Any, bytes]]") -> None:
        self.mechanism = mechanism
        self.rows = rows
        self.groups: "dict[str, list[int]]" = defaultdict(list)
        for place, (answer, _) in rows.items():
            self.groups[repr(answer)].append(place)
        self.columns = list(self._columns())

    def payloads(self, places: "list[int]") -> "list[bytes]":
        return [self.rows[place][1] for place in places]

    def answer_of(self, places: "list[int]") -> "Any":
        return self.rows[places[0]][0]

    def _columns(self) -> "Iterator[Column]":
        """What noise did, in the reports' order: to the support of the own answer, or to numbers."""
        if isinstance(self.mechanism, ChoiceMechanism):
            share = float(self.mechanism.p)
            yield Column([value - share for value in self.supports()], share)
            return
        silent = {
            key: words_of(self.mechanism, self.answer_of(places), SILENT)
            for key, places in self.groups.items()
        }
        noise = [
            [word - still for word, still in zip(self.mechanism.words(payload), silent[repr(answer)])]
            for answer, payload in self.rows.values()
        ]
        for word in range(min(WORDS, len(noise[0]) if noise else 0)):
            yield Column([float(row[word]) for row in noise])

    def supports(self) -> "list[bool]":
        """Whether each report of a choice supports its own."""
        own = {key: self.mechanism.quantise(self.answer_of(places)) for key, places in self.groups.items()}
        return [
            self.mechanism.supported(payload, own[repr(answer)]) for answer, payload in self.rows.values()
        ]


def payload_checks(
    study: "Study",
    mechanisms: "dict[str, Any]",
    told: "list[dict[str, Any]]",
    texts: "list[str]",
    sample_checks: "SampleChecks",
) -> "list[Check]":
    """Hold reports that one path made to the law of each question, to each other, and their ids to both.

    told: what each person answered. texts: their reports, in the same order. sample_checks: (mechanism,
    answer, batch) → what reports of one answer must be like.
    """
    try:
        reports = [Report.from_json(text) for text in texts]
        questions = {name: _told(mechanisms[name], name, told, reports) for name in mechanisms}
    except (ReportError, LookupError) as error:
        return [Check("whole reports follow the law", False, f"not a report: {error}")]
    checks = [_law(study, questions, sample_checks)]
    if not study.ask_one:
        checks.append(_apart(questions))
    return [*checks, _ids(questions, reports)]


def _told(mechanism: "Any", name: str, told: "list[dict[str, Any]]", reports: "list[Report]") -> Told:
    rows = {}
    for place, (answers, report) in enumerate(zip(told, reports)):
        if name in report.payloads:
            mechanism.check(report.payloads[name])
            rows[place] = (answers[name], report.payloads[name])
    return Told(mechanism, rows)


def _law(study: "Study", questions: "dict[str, Told]", sample_checks: "SampleChecks") -> Check:
    """Reports of each answer by what belongs to that; and of choices, how often they support their own."""
    wrong, worst = "", 0.0
    for name, told in questions.items():
        for check in _checks_of(told, sample_checks):
            if not check.passed:
                wrong = wrong or f"{name}: {check.name}: {check.detail}"
        if isinstance(told.mechanism, ChoiceMechanism):
            worst = max(worst, *_support_scores(told))
        if study.ask_one:
            everybody = sum([len(one.rows) for one in questions.values()])
            worst = max(worst, count_score(len(told.rows), everybody, 1 / len(questions)))
    if worst >= WIDE_LIMIT:
        wrong = wrong or "how often reports support their own answer, or are about a question"
    reports = max([len(told.rows) for told in questions.values()])
    detail = f"{reports} reports; counts at most {worst:.1f} standard errors off"
    return Check("whole reports follow the law", not wrong, f"{wrong}; {detail}" if wrong else detail)


def _checks_of(told: Told, sample_checks: "SampleChecks") -> "Iterator[Check]":
    if isinstance(told.mechanism, SampledProducts):
        if told.rows:
            records = [told.mechanism.quantise(answer) for answer, _ in told.rows.values()]
            yield from product_checks(told.mechanism, records, [payload for _, payload in told.rows.values()])
        return
    for places in told.groups.values():
        if len(places) >= FEWEST:
            batch = Batch(told.payloads(places), told.mechanism.words)
            yield from sample_checks(told.mechanism, told.answer_of(places), batch)


def _support_scores(told: Told) -> "Iterator[float]":
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


def _apart(questions: "dict[str, Told]") -> Check:
    """Noise of two questions of a person, and of people who follow each other, is independent."""
    columns = [(name, column) for name, told in questions.items() for column in told.columns]
    worst, where = 0.0, "nothing"
    for place, (name, column) in enumerate(columns):
        lags = [_lagged(column, lag) for lag in (1, 2)]
        found = [(score, f"{name} of two people") for score in lags]
        for other_name, other in columns[:place]:
            both = f"{name} and {other_name}"
            found += [(pair_score(column, other), both), (pair_score(column, other, 1), both)]
            found += [(pair_score(other, column, 1), both)]
        worst, where = max([(worst, where), *found])
    return Check(
        "questions and people do not share noise",
        worst < WIDE_LIMIT,
        f"largest correlation {worst:.1f} standard errors ({where})",
    )


def _lagged(column: Column, lag: int) -> float:
    """Of a column with itself, so many people later."""
    return pair_score(column, column, lag) if column.share is None else lag_score(column, lag)


def _ids(questions: "dict[str, Told]", reports: "list[Report]") -> Check:
    """No bit of an id depends on an answer, or on what noise did to it; and no id comes again."""
    bits = [int(report.id, 16) for report in reports]
    worst = 0.0
    for told in questions.values():
        above = [value > 0 for value in told.columns[0].values] if told.columns else [True] * len(told.rows)
        groups = defaultdict(list)
        for place, is_above in zip(told.rows, above):
            groups[repr(told.rows[place][0]), is_above].append(bits[place])
        for ids in groups.values():
            digits = "".join([f"{one:0{ID_BITS}b}" for one in ids])
            counts = [digits[bit::ID_BITS].count("1") for bit in range(ID_BITS)]
            worst = max([worst, *[count_score(count, len(ids), 0.5) for count in counts]])
    again = len(bits) - len(set(bits))
    return Check(
        "a report's id tells no answer",
        worst < WIDE_LIMIT and not again,
        f"{again} ids come again; bits at most {worst:.1f} standard errors off",
    )
