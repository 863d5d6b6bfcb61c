"""A permanent noisy answer and fresh noise on it: the law of one report, and what all of them reveal."""

from collections import Counter
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.bulk import perturb_many
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.memoized import Remembering
from ldpkit.perturbing import perturb_file
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.exact_laws import faults, law_of, laws_of, stages_of, worst_ratio
from tests.statistics import no_noise


def mechanism(of, choices, epsilon, instantaneous):
    stated = {"name": "memoized", "of": of, "epsilon": epsilon, "instantaneous_epsilon": instantaneous}
    return studies.mechanism_of(studies.CHOICE, choices={"count": choices}, mechanism=stated)


@pytest.mark.parametrize(("epsilon", "instantaneous"), [("2", "1"), ("0.5", "0.4999999"), ("6", "0.1")])
@pytest.mark.parametrize("of", ["randomized_response", "sue"])
def test_one_report_has_the_stated_law_and_both_epsilons_follow_from_the_integers(of, epsilon, instantaneous):
    m = mechanism(of, 3, epsilon, instantaneous)
    laws = laws_of(m)
    assert not faults(m, laws)
    assert worst_ratio(laws) == Fraction(*m.odds)
    stated = {m.privacy: (m.first.odds, epsilon), m.report_privacy: (m.odds, instantaneous)}
    with mpmath.workprec(300):
        for privacy, (odds, limit) in stated.items():
            exact = mpmath.log(mpmath.mpf(odds[0]) / odds[1])
            assert 0 <= mpmath.mpf(privacy.epsilon.numerator) / privacy.epsilon.denominator - exact < 1e-29
            assert exact <= mpmath.mpf(limit)
            assert float(exact) == pytest.approx(float(limit), rel=1e-5)


@pytest.mark.parametrize("of", ["randomized_response", "sue"])
def test_many_reports_reveal_only_the_permanent_answer(of):
    """Exactly, for three reports together: the worst ratio stays below that of the permanent answer."""
    m = mechanism(of, 2, "2", "1")
    first, again = stages_of(m)
    states = [law_of(m.first, index, first) for index in range(2)]
    reports = {state: law_of(SimpleNamespace(randomise=m.instantaneous), state, again) for state in states[0]}
    joint = []
    for law in states:
        together = Counter()
        for state, chance in law.items():
            for (one, p), (two, q), (three, r) in product(reports[state].items(), repeat=3):
                together[one, two, three] += chance * p * q * r
        joint.append(together)
    worst = worst_ratio(joint)
    assert Fraction(*m.odds) ** 2 > worst > Fraction(*m.odds)
    assert worst < Fraction(*m.first.odds)


STUDY = Study(studies.document(studies.YES_NO, studies.MEMOIZED))
ANSWERS = {"ever": True, "habit": True}


@pytest.mark.attack(4)
@pytest.mark.parametrize("sample_one_question", [False, True])
def test_memoized_question_is_refused_where_its_answer_would_be_drawn_again(tmp_path, sample_one_question):
    """Ask many reports of one person in a batch: the redrawn answers together reveal the truth."""
    study = Study({**STUDY.document, "sample_one_question": sample_one_question})
    (tmp_path / "answers.csv").write_text(studies.answers_csv([ANSWERS]))
    out = tmp_path / "reports.ndjson"
    for way in (
        lambda: perturb_answers(study, mechanisms_of(study), ANSWERS, no_noise),
        lambda: perturb_many(mechanisms_of(study)["habit"], np.ones(60, bool), no_noise),
        lambda: perturb_file(study, str(tmp_path / "answers.csv"), str(out)),
    ):
        with raises(InputError, "core.memoized", "habit"):
            way()
    assert not out.exists()


def test_remembering_mechanism_repeats_its_permanent_answer():
    """60 reports of one device reveal no more than its permanent answer, which is kept."""
    remembering = mechanisms_of(STUDY)
    remembering["habit"] = Remembering(remembering["habit"], None)
    kept = set()
    for _ in range(60):
        perturb_answers(STUDY, remembering, ANSWERS)
        kept.add(remembering["habit"].answer)
    assert len(kept) == 1
