"""Bounds under false reports: exact at the channel's extreme points, shown in every output."""

import json

import numpy as np
import pytest

from benchmarks.false_reports import set_law
from inference import fit, summarize
from inference.false_reports.sets import mean_bounds, shares_of_reports
from inference.likelihoods.numbers.noise import noise_channel
from inference.models.number import ANSWERS, cell_edges
from inference.results.report import save_report
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError
from schemas import Study
from summaries import QuestionSummary
from tests import studies
from tests.kit import reporting
from tests.kit.errors import raises

# So many that chance is nothing beside a share of false reports.
MANY = 10**14
SHARE = 0.02


def with_false(honest, report):
    """Counts of MANY reports: the honest law's (cells,), but for a share of one report."""
    found = (1 - SHARE) * honest
    found[report] += SHARE
    counts = np.rint(found * MANY).astype(np.int64)
    counts[np.argmax(counts)] += MANY - counts.sum()
    return QuestionSummary(MANY, counts)


CHOICES = [
    *[{**studies.CHOICE, "mechanism": {"name": name, "epsilon": "1"}} for name in ("oue", "olh")],
    {**studies.CHOICE, "choices": list("abcde"), "mechanism": {"name": "subset_selection", "epsilon": "1"}},
    studies.ONE_OF,
]


@pytest.mark.parametrize("template", CHOICES, ids=lambda one: one["mechanism"]["name"])
def test_bounds_hold_the_truth_and_are_reached_by_worst_report(template):
    mechanism = studies.mechanism_of(template)
    law, _ = set_law(mechanism)
    truth = np.arange(1.0, 1 + len(law))
    truth /= truth.sum()
    reports = np.flatnonzero(law.max(axis=0) > 0)
    ends = [shares_of_reports(mechanism, with_false(truth @ law, one)).bounds(SHARE) for one in reports]
    low, high = np.asarray(ends).transpose(1, 0, 2)
    assert (low <= truth + 1e-6).all()
    assert (high >= truth - 1e-6).all()
    assert np.abs(low - truth).min(axis=0).max() < 1e-5
    assert np.abs(high - truth).min(axis=0).max() < 1e-5


@pytest.mark.parametrize("template", [studies.AGE, studies.NORMAL], ids=["laplace", "gaussian"])
def test_bounds_of_the_mean_hold_the_truth(template):
    mechanism = studies.mechanism_of(template)
    channel = noise_channel(mechanism.name, ANSWERS, *cell_edges(mechanism))
    places = np.linspace(0, 1, len(channel))
    for shares in (places**2, places == 0, np.exp(-((places - 0.4) ** 2) / 0.02)):
        law = shares / shares.sum()
        mean = law @ places
        for report in (0, 1, channel.shape[1] // 2, channel.shape[1] - 1):
            low, high = mean_bounds(mechanism, with_false(law @ channel, report), SHARE)
            assert low - 1e-3 <= mean <= high + 1e-3


@pytest.mark.slow
def test_identified_set_is_shown_in_every_output(tmp_path):
    study = Study(studies.document(studies.YES_NO))
    part = reporting.reduced(study.questions[0], np.arange(2000) % 4 == 0)
    summary = reporting.summary_of(study, {"ever": part})
    found = fit(study, summary, draws=200, method="gaussian_approx", contamination=0.01)
    low, high = found["ever"].identified.sets["p"]
    row = found["ever"].rows()["p"]
    assert 0 <= low < row["q05"] < row["q95"] < high <= 1
    save_report(found, tmp_path, study)
    said = json.loads((tmp_path / "posterior.json").read_text())["questions"]["ever"]["contamination"]
    assert said["share"] == 0.01
    assert "If at most 1 % of the reports were false" in (tmp_path / "report.html").read_text()
    wider = fit(study, summary, method="gaussian_approx", contamination=0.05)["ever"].identified.sets["p"]
    assert wider[0] < low
    assert high < wider[1]
    assert fit(study, summary, method="gaussian_approx")["ever"].identified is None


@pytest.mark.parametrize("share", [-0.1, 0.5, float("nan"), "0.01"])
def test_invalid_contamination_is_rejected(share):
    with raises(InputError, "fit.wrong_contamination"):
        fit(STUDY, [], contamination=share)


NAMES = "abcdefghij"
ASKED = {**studies.YES_NO, "mechanism": {"name": "randomized_response", "epsilon": "4"}}
STUDY = Study(studies.document(*({**ASKED, "id": name} for name in NAMES), sample_one_question=True))
HONEST, FALSE, TRUTH = 2970, 30, 0.1
FEW = {"method": "gaussian_approx", "draws": 200, "chains": 2}


@pytest.fixture(scope="module")
def reports():
    """One in a hundred is false, and all of these say yes to `a`."""
    random = np.random.default_rng(5)
    source, mechanisms = NotForRealAnswers(random.bytes), mechanisms_of(STUDY)

    def sent(share):
        answers = {name: bool(random.random() < share) for name in NAMES}
        return perturb_answers(STUDY, mechanisms, answers, source)

    found = [sent(TRUTH) for _ in range(HONEST)]
    while len(found) < HONEST + FALSE:
        one = sent(1.0)
        if "a" in one.payloads and mechanisms["a"].supported(one.payloads["a"], 1):
            found.append(one)
    return found


@pytest.mark.slow
@pytest.mark.attack(18)
def test_identified_set_allows_all_false_reports_on_one_question(reports):
    """Send all false reports to the same question of a study that asks each device one."""
    found = fit(STUDY, summarize(STUDY, reports), questions=["a"], contamination=0.01, **FEW)["a"].identified
    low, high = found.sets["p"]
    assert low <= TRUTH <= high
    assert found.to_document()["of_this_question"] == pytest.approx(1 / 12)
    half = fit(STUDY, summarize(STUDY, reports), questions=["b"], contamination=0.06, **FEW)["b"].identified
    assert not half.sets
