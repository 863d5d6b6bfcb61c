"""`plan_shuffled`: the device's epsilons for what the set of reports may tell."""

from decimal import Decimal

import pytest

from inference.design.device_epsilon import STEP, plan_shuffled
from ldp_client.documents.errors import InputError
from schemas import Study
from schemas.shuffling.reports import shuffled_privacy
from tests import studies
from tests.kit.errors import raises


def two(first="1", second="0.5"):
    asked = [studies.with_epsilon(studies.YES_NO, first), studies.with_epsilon(studies.CHOICE, second)]
    return Study(studies.document(*asked))


@pytest.mark.slow
def test_epsilons_are_the_largest_within_the_target():
    planned = plan_shuffled(two(), "0.1", 10_000)
    first, second = (Decimal(str(question.mechanism.epsilon)) for question in planned.questions)
    # In the study's proportions, but for their last digit.
    assert abs(first - 2 * second) <= Decimal("0.0002")
    assert shuffled_privacy(planned, 10_000).epsilon <= 0.1 + 2**-20
    more = (first + second + 2 * STEP) / (first + second)
    larger = two(f"{first * more:.4f}", f"{second * more:.4f}")
    assert shuffled_privacy(larger, 10_000).epsilon > 0.1


def test_noise_with_a_delta_is_refused():
    with raises(InputError, "set.has_delta", "weight:"):
        plan_shuffled(Study(studies.document(studies.NORMAL)), "0.1", 1000)


def test_epsilon_towards_the_set_that_no_device_reaches_is_refused():
    with raises(InputError, "plan.set_epsilon_not_reached", "no device's epsilon of 0.01 or more"):
        plan_shuffled(two(), "0.001", 10)
