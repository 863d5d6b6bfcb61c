"""Secure sums are simulated as totals, from the law of the devices' sums."""

from __future__ import annotations

import numpy as np
import pytest
from pandas import DataFrame

from inference.design.calibration import prior_truths
from inference.design.simulation import exact_total, for_devices
from inference.models import family_of
from ldp_client import mechanism_for
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.core.strips import normal
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises
from tests.kit.secure_sum import QUESTIONS, build_study

PEOPLE = 200
zeros = NotForRealAnswers(bytes)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_simulated_total_matches_sum_of_devices(name):
    """To half a grid unit a person, a millionth of one device's noise."""
    question = build_study(name).questions[0]
    mechanism = mechanism_for(question)
    answers = family_of(question).simulate(
        question, prior_truths(question, 1, 5)[0], PEOPLE, np.random.default_rng(5)
    )
    noise = np.asarray(normal(mechanism.size, zeros))
    people = answers.tolist() if not isinstance(answers, dict) else DataFrame(answers).to_dict("records")
    words = b"".join(mechanism.noisy_vector(mechanism.quantise(answer), zeros) for answer in people)
    devices = (np.frombuffer(words, "<i8").reshape(PEOPLE, -1) - noise).sum(axis=0)
    found = exact_total(question, mechanism, answers, clip=True)
    # Fields are rounded to 2**-20 besides; a histogram may put one person on an edge elsewhere.
    assert found == pytest.approx(devices, abs=PEOPLE * (0.5 + 4 * mechanism.grid * 2.0**-20))


def test_a_study_of_other_size_keeps_its_share_of_drop_outs():
    question = build_study("ever", devices=20, max_faulty=5).questions[0]
    protocol = for_devices(question, 1000).protocol
    assert (protocol.devices, protocol.max_faulty, question.protocol.devices) == (1000, 250, 20)
    assert for_devices(question, 3).protocol.max_faulty == 0
    with raises(InputError, "plan.too_few_for_secure_sum", "3"):
        for_devices(question, 2)
