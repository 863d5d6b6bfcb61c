"""What problems advise is what devices do, and docs/operate.md says when they send again."""

from collector import problems
from ldp_client.device.requests import FINAL
from tests.kit.collectors import REPOSITORY


def test_problems_match_their_table_and_device_behaviour():
    kinds = [kind for kind in vars(problems).values() if isinstance(kind, problems.Kind)]
    text = (REPOSITORY / "docs" / "operate.md").read_text(encoding="utf-8")
    for status in {kind.status for kind in kinds if kind.retry_after is not None} - {425}:
        assert f"| {status}, `Retry-After` |" in text
    final = [kind for kind in kinds if "drop" in kind.advice.lower()]
    assert {kind.name for kind in final} == set(FINAL)
    assert all("if `digest` is" in kind.advice for kind in final)
