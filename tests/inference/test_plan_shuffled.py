"""`ldpkit plan --shuffled`: the device's epsilons for what the set of reports may tell."""

import json
from decimal import Decimal

import pytest

from inference.design.device_epsilon import STEP, plan_shuffled
from ldp_client.documents.errors import InputError
from ldp_client.shuffling.reports import shuffled_privacy
from ldpkit import cli
from schemas import Study
from tests import studies
from tests.kit.errors import raises


def two(first="1", second="0.5"):
    asked = [studies.with_epsilon(studies.YES_NO, first), studies.with_epsilon(studies.CHOICE, second)]
    return Study(studies.document(*asked))


@pytest.mark.slow
def test_epsilons_are_the_largest_within_the_target():
    found = plan_shuffled(two(), "0.1", 10_000)
    first, second = (Decimal(found.epsilons[name]) for name in ("ever", "occupation"))
    # In the study's proportions, but for their last digit.
    assert abs(first - 2 * second) <= Decimal("0.0002")
    assert shuffled_privacy(Study(dict(found.document)), 10_000).epsilon <= 0.1 + 2**-20
    assert found.found.epsilon <= 0.1
    more = (first + second + 2 * STEP) / (first + second)
    larger = two(f"{first * more:.4f}", f"{second * more:.4f}")
    assert shuffled_privacy(larger, 10_000).epsilon > 0.1


def test_noise_with_a_delta_is_refused():
    with raises(InputError, "set.has_delta", "weight:"):
        plan_shuffled(Study(studies.document(studies.NORMAL)), "0.1", 1000)


def test_command_prints_epsilon_and_writes_the_study(tmp_path, capsys):
    (tmp_path / "study.json").write_text(json.dumps(studies.document(studies.YES_NO)))
    command = ["plan", f"{tmp_path}/study.json", "--shuffled", "0.1", "--n", "10000"]
    assert cli.main([*command, "--out", f"{tmp_path}/plan", "--contamination", "100"]) == 0
    said = capsys.readouterr().out
    written = json.loads((tmp_path / "plan" / "plan.json").read_text())
    epsilon = written["questions"]["ever"]["epsilon"]
    assert epsilon in said
    assert "towards an observer of only the set of reports" in said
    assert written["shuffled_privacy"]["hidden_among"] == 9900
    planned = Study(json.loads((tmp_path / "plan" / "set-study.json").read_text()))
    assert str(planned.questions[0].mechanism.epsilon) == str(Decimal(epsilon).normalize())
