"""What problems advise agrees with what devices do."""

from collector import problems
from ldp_client.device.requests import FINAL


def test_problem_advice_matches_device_behaviour():
    kinds = [kind for kind in vars(problems).values() if isinstance(kind, problems.Kind)]
    final = [kind for kind in kinds if "drop" in kind.advice.lower()]
    assert {kind.name for kind in final} == set(FINAL)
    assert all("if `digest` is" in kind.advice for kind in final)
