"""Analyses of device reports: each payload's likelihood vector, and a study from devices to coefficients.

Attack: Quote the small ε of the set of reports as what everybody is promised, also towards who sees reports
arrive: `ldpkit check`: says towards whom it holds, the device's own ε beside it, and that without a
channel the collector is none of them. Known limit: what others quote.

Attack: Send false reports, so that people hide among fewer than the set's size tells: `--contamination`:
left out of the set, all from the person's own cell. Known limit: how many there are, which nobody can
count.

Attack: (by mistake) take a report to hide among all, though its public values are shared by few: `ldpkit
check --n N --smallest-cell N`: computes with those alone; without the second no cell larger than
an even spread's.
"""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest
from numpyro import handlers

from inference import analyse, summarize
from inference.analyses.assembling import assemble
from inference.analyses.reports import columns_in, private_of, table_of_reports
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError, SummaryError
from ldpkit.cli import main
from schemas import Report, Study
from summaries import Summary
from tests import studies
from tests.kit.errors import raises

PUBLIC = [
    {"id": "region", "choices": ["south", "north", "east"]},
    {"id": "age", "bounds": ["20", "60"], "step": "10"},
]
JOB = {**studies.CHOICE, "id": "job", "mechanism": {"name": "oue", "epsilon": "3"}}
EVER = {**studies.YES_NO, "mechanism": {"name": "randomized_response", "epsilon": "2"}}


def study_of(*questions, **more) -> Study:
    return Study({**studies.document(*questions), "public": PUBLIC, **more})


@pytest.fixture(scope="module")
def answered():
    """1,500 devices: logit P(ever) = −1 + 1.5 in the north + 0.05 × (age − 40); nobody is in the east."""
    study, random = study_of(EVER, JOB), np.random.default_rng(8)
    mechanisms, reports = mechanisms_of(study), []
    source = NotForRealAnswers(random.bytes)
    for person in range(1500):
        region, age = ("south", "north")[person % 2], 20 + 10 * int(random.integers(5))
        eta = -1 + 1.5 * (region == "north") + 0.05 * (age - 40)
        ever = bool(random.random() < 1 / (1 + np.exp(-eta)))
        job = ["student", "worker", "teacher"][
            int(random.choice(3, p=[0.6, 0.3, 0.1] if ever else [0.2, 0.3, 0.5]))
        ]
        answers = {"ever": ever, "job": job, "region": region, "age": age}
        reports.append(perturb_answers(study, mechanisms, answers, source))
    return study, reports


MECHANISMS = [
    {"name": "randomized_response"},
    {"name": "oue"},
    {"name": "sue"},
    {"name": "subset_selection"},
    {"name": "olh"},
    {"name": "hadamard"},
    {"name": "memoized", "of": "randomized_response", "instantaneous_epsilon": "0.5"},
    {"name": "memoized", "of": "sue", "instantaneous_epsilon": "0.5"},
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: f"{one['name']}-{one.get('of', '')}")
def test_likelihood_vector_of_payload_matches_mechanism(mechanism):
    """Two choices' entries are in the ratio of P(payload | choice): e^ε if only one is supported."""
    epsilon = "2" if mechanism["name"] == "memoized" else "1"
    question = {**studies.CHOICE, "choices": {"count": 9}, "mechanism": {**mechanism, "epsilon": epsilon}}
    study = Study(studies.document(question))
    (own,) = mechanisms_of(study).values()
    payloads = [own.perturb(place % 9) for place in range(60)]
    column = private_of(study.questions[0], [*payloads, None])
    for payload, code in zip(payloads, column.codes, strict=False):
        weights = [own.odds[0] if own.supported(payload, k) else own.odds[1] for k in range(9)]
        vector = column.vectors[code]
        assert vector / vector.sum() == pytest.approx(np.asarray(weights, float) / sum(weights), rel=1e-12)
    assert column.missing == 1
    assert list(column.vectors[column.codes[-1]]) == [1.0] * 9


@pytest.mark.slow
def test_posterior_is_near_the_simulated_truth(answered):
    study, reports = answered
    found = analyse(study, reports, "ever ~ region + age", seed=1)
    truth = {"Intercept": -3.0, "region[north]": 1.5, "age": 0.05}
    rows = found.rows()
    for name, value in truth.items():
        assert abs(rows[name]["mean"] - value) < 5 * rows[name]["sd"]
    assert any("no report has region[east]" in note for note in found.diagnostics.notes)
    assert rows["region[east]"]["sd"] > 2
    assert found.study_digest == study.digest


@pytest.mark.slow
def test_reports_are_counted_by_cell(answered):
    """Two regions, five ages, two reports: twenty patterns of 1,500 reports."""
    study, reports = answered
    table = table_of_reports(study, reports, columns_in(study, "ever ~ region + age"))
    assert len(assemble(table, "ever ~ region + age").cells.counts) <= 20
    assert table.n == 1500


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: f"{one['name']}-{one.get('of', '')}")
def test_summary_by_cell_has_same_likelihood_as_reports(mechanism):
    """Log-likelihoods at the same parameters are equal."""
    epsilon = "2" if mechanism["name"] == "memoized" else "1"
    study = study_of({**JOB, "choices": {"count": 5}, "mechanism": {**mechanism, "epsilon": epsilon}}, EVER)
    own, random = mechanisms_of(study)["job"], np.random.default_rng(4)
    reports = []
    for one in range(60):
        payloads = {"job": own.perturb(one % 5), "ever": b"\0"}
        public = {"region": ("south", "east")[one % 2], "age": f"{20 + 10 * (one % 3)}"}
        reports.append(Report(f"{one:032x}", study.id, 1, study.digest, payloads, public=public))
    names = columns_in(study, "job ~ region + age")
    tables = [table_of_reports(study, one, names) for one in (reports, summarize(study, reports))]
    found = [assemble(table, "job ~ region + age") for table in tables]
    sites = {name: random.normal(size=np.shape(value)) for name, value in found[0].initial().items()}
    with jax.enable_x64(True):
        by_reports, by_summary = (log_likelihood(one, sites) for one in found)
    assert tables[0].n == tables[1].n == 60
    assert by_summary == pytest.approx(by_reports, abs=1e-10)


def log_likelihood(found, sites) -> float:
    data = {name: np.asarray(value) for name, value in found.data().items()}
    trace = handlers.trace(handlers.substitute(found.program, data=sites)).get_trace(**data)
    return float(trace["reports"]["fn"].log_factor)


def test_summary_of_column_sums_is_rejected():
    study = study_of({**JOB, "choices": {"count": 20}})
    with raises(InputError, "formula.summary_of_supports"):
        analyse(study, Summary.empty(study), "job ~ age")


@pytest.mark.slow
def test_fit_command_fits_a_formula_to_a_study(answered, tmp_path, monkeypatch):
    study, reports = answered
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.json").write_text(study.to_json())
    (tmp_path / "reports.ndjson").write_text("".join(f"{one.to_json()}\n" for one in reports))
    files = ["study.json", "reports.ndjson", "--out", "out"]
    assert main(["fit", *files, "--formula", "ever ~ age"]) == 0
    entry = json.loads((tmp_path / "out" / "posterior.json").read_text())
    assert entry["study_digest"] == study.digest
    assert set(entry["questions"]["ever"]["parameters"]) == {"Intercept", "age"}
    assert entry["questions"]["ever"]["formula"] == "ever ~ age"
    assert (tmp_path / "out" / "tables.csv").read_text().count("\never,logit,") == 2
    assert "ever \\~ age" in (tmp_path / "out" / "report.md").read_text()
    assert main(["fit", *files, "--formula", "ever ~ agee"]) == 3
    assert main(["fit", *files, "--formula", "ever ~ age", "--design", "design.json"]) == 2


def test_input_that_cannot_be_analysed_is_rejected(answered):
    study, reports = answered
    with raises(InputError, "table.unknown_column", "did you mean region"):
        analyse(study, reports, "ever ~ regions")
    with raises(InputError, "formula.summary_has_no_reports"):
        analyse(study, summarize(study, reports), "ever ~ job")
    with raises(SummaryError, "summary.other_study"):
        analyse(study_of(EVER, title="Another"), summarize(study, reports), "ever ~ age")
    with raises(InputError, "fit.no_answers_to_study"):
        analyse(study, [], "ever ~ age")
    record = study_of(EVER, studies.LINEAR)
    with raises(InputError, "formula.question_not_analysable"):
        analyse(record, [], "ever ~ rating")
    one = study_of(EVER, JOB, sample_one_question=True)
    with raises(InputError, "formula.one_question_a_person"):
        analyse(one, [], "ever ~ job")
