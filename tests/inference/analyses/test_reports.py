"""Analyses of device reports: each payload's likelihood of every choice, counted by cell."""

import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from inference import analyse, summarize
from inference.analyses.design_file import read_design
from inference.analyses.private_columns import private_of
from inference.analyses.program import assemble
from inference.analyses.study_formula import table_of_reports, table_of_waves
from inference.analyses.survey import survey_of
from ldp_client import mechanism_for, mechanisms_of
from ldp_client.documents.errors import InputError, SummaryError
from schemas import Study
from summaries import Summary
from summaries.decoding import decoder_of
from tests import studies
from tests.inference.analyses import simulated
from tests.inference.analyses.simulated import EVER, JOB, reports_of, study_of
from tests.kit.errors import raises

MECHANISMS = [
    {"name": "randomized_response"},
    {"name": "oue"},
    {"name": "subset_selection"},
    {"name": "olh"},
    {"name": "hadamard"},
    {"name": "memoized", "of": "sue", "instantaneous_epsilon": "0.5"},
]


def choice_of(mechanism, count):
    epsilon = "2" if mechanism["name"] == "memoized" else "1"
    return {**JOB, "choices": {"count": count}, "mechanism": {**mechanism, "epsilon": epsilon}}


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one["name"])
def test_likelihood_vector_of_payload_matches_mechanism(mechanism):
    """Two choices' entries are in the ratio of P(payload | choice): e^ε if only one is supported."""
    study = Study(studies.document(choice_of(mechanism, 9)))
    (own,) = mechanisms_of(study).values()
    payloads = [own.perturb(place % 9) for place in range(60)]
    column = private_of(study.questions[0], payloads)
    for payload, code in zip(payloads, column.codes, strict=True):
        weights = np.asarray([own.odds[not own.supported(payload, choice)] for choice in range(9)], float)
        vector = column.choices.vectors[0, code]
        assert vector / vector.sum() == pytest.approx(weights / weights.sum(), rel=1e-12)


@pytest.mark.attack(17)
@pytest.mark.parametrize(
    ("epsilon", "choices", "refusal"), [("0.5", 3, False), ("2", 6, True), ("5", 6, False)]
)
def test_hadamard_decoding_is_unbiased(epsilon, choices, refusal):
    """Choices of other blocks are not supported as often as those of the same: by every payload's chance."""
    labels = ["none", "farm", "shop", "office", "clinic", "school"][:choices]
    stated = {**JOB, "choices": labels, "mechanism": {"name": "hadamard", "epsilon": epsilon}}
    question = Study(studies.document({**stated, "refusal": refusal})).questions[0]
    own = mechanism_for(question)
    assert (own.blocks == 1) == (epsilon == "0.5")
    payloads = [one.to_bytes(own.payload_size, "big") for one in range(own.columns)]
    p = Fraction(own.threshold, 1 << own.bits)
    each = p, (1 - p) / (2 * own.blocks - 1)
    chances = [
        [Fraction(2, own.width) * each[not own.supported(one, answer)] for one in payloads]
        for answer in range(own.choices)
    ]
    assert all(sum(row) == 1 for row in chances)
    chances = np.asarray(chances, np.float64)
    decoded = np.asarray([decoder_of(own).cells(one)[1:] for one in payloads], np.float64)
    np.testing.assert_allclose(chances @ decoded, np.eye(own.choices), atol=1e-9)
    private = private_of(question, payloads)
    channel = private.choices
    np.testing.assert_allclose(channel.chances[0, 0], chances @ channel.shows[private.codes], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS[1:5:3], ids=lambda one: one["name"])
def test_summary_by_cell_has_same_likelihood_as_reports(mechanism):
    study, formula = study_of(choice_of(mechanism, 5), EVER), "job ~ region + age"
    reports = reports_of(study, 60)
    tables = [table_of_waves({"": (study, one)}, formula) for one in (reports, summarize(study, reports))]
    found = [assemble(table, formula) for table in tables]
    sites = {name: one[0, 0] for name, one in simulated.any_draws(found[0], 1).items()}
    by_reports, by_summary = (simulated.log_likelihood(one, sites) for one in found)
    assert tables[0].n == tables[1].n == 60
    assert by_summary == pytest.approx(by_reports, abs=1e-10)


def test_reports_are_counted_by_cell_and_choices_keep_their_order():
    """Two regions, five ages, two reports: twenty patterns of 300 reports, and a region without any."""
    study = study_of(EVER, JOB)
    table = table_of_waves({"": (study, reports_of(study, 300))}, "ever ~ region + age")
    assert (table.n, table.digest) == (300, study.digest)
    found = assemble(table, "ever ~ region + age")
    assert len(found.table.counts) <= 20
    assert found.law.empty == ("region[east]",)


def test_reports_on_other_question_are_left_out():
    """A device is asked one of several questions; its report is no blank answer to the others."""
    study = study_of(studies.YES_NO, studies.NUMBER, sample_one_question=True)
    table = table_of_reports(study, reports_of(study, 60), ["hours", "region"])
    assert 15 < table.n < 45
    assert f"{60 - table.n} reports answered another question and are not used" in table.notes
    assemble(table, "hours ~ 1")


def test_noise_of_formula_names_epsilon_of_each_private_column():
    study = study_of(EVER, JOB)
    noise = table_of_reports(study, reports_of(study, 9), ["ever", "job"]).noise
    dice = survey_of(pd.DataFrame({"armed": ["no", "yes"]}), read_design(simulated.design(armed={}))).noise
    for line, name, epsilon in (*zip(noise, ("ever", "job"), (2, 3)), (dice[-1], "armed", np.log(5))):
        assert line.startswith(f"{name}: ")
        assert float(re.search("ε = ([0-9]+(?:[.][0-9]+)?)", line)[1]) == pytest.approx(epsilon, abs=1e-5)


def test_input_that_cannot_be_analysed_is_rejected():
    study = study_of(EVER, JOB)
    reports = reports_of(study, 3)
    record, one = study_of(EVER, studies.LINEAR), study_of(EVER, JOB, sample_one_question=True)
    wide, number = study_of({**JOB, "choices": {"count": 20}}), study_of(studies.NUMBER)
    other = study_of(EVER, title="Another")
    for asked, given, formula, code in (
        (study, reports, "ever ~ regions", ("table.unknown_column", "did you mean region")),
        (study, summarize(study, reports), "ever ~ job", "formula.summary_has_no_reports"),
        (study, [], "ever ~ age", "fit.no_answers_to_study"),
        (record, [], "ever ~ rating", "formula.question_not_analysable"),
        (one, [], "ever ~ job", "formula.one_question_a_person"),
        (wide, Summary.empty(wide), "job ~ age", "formula.summary_adds_reports_up"),
        (number, Summary.empty(number), "hours ~ region", "formula.summary_adds_reports_up"),
        (study_of({**JOB, "choices": {"count": 1001}}), [], "job ~ age", "formula.too_many_choices"),
    ):
        with raises(InputError, code):
            analyse(asked, given, formula)
    with raises(SummaryError, "summary.other_study"):
        analyse(other, summarize(study, reports), "ever ~ age")
