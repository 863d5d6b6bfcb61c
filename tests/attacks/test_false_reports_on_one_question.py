"""A study asks each device one question, which the device chooses: all false reports go to the same one.

Defence: `fit --contamination`, summaries and the operator's page: take the share relative to that
question's reports, and give no set if it is half of these or more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from inference import fit, summarize
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldpkit.cli import main
from schemas import Report, Study
from summaries.influence import influence_in_words
from tests import studies

NAMES = "abcdefghij"
ASKED = {**studies.YES_NO, "mechanism": {"name": "randomized_response", "epsilon": "4"}}
STUDY = Study(studies.document(*({**ASKED, "id": name} for name in NAMES), sample_one_question=True))
HONEST, FALSE, TRUTH = 2970, 30, 0.1
FEW: dict[str, Any] = {"method": "gaussian_approx", "draws": 200, "chains": 2}


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    """One in a hundred is false, and all of these say yes to `a`."""
    random = np.random.default_rng(5)
    source, mechanisms = NotForRealAnswers(random.bytes), mechanisms_of(STUDY)

    wanted = cast(ChoiceMechanism, mechanisms["a"])

    def sent(share: float) -> Report:
        answers = {name: bool(random.random() < share) for name in NAMES}
        return perturb_answers(STUDY, mechanisms, answers, source)

    found = [sent(TRUTH) for _ in range(HONEST)]
    while len(found) < HONEST + FALSE:
        one = sent(1.0)
        if "a" in one.payloads and wanted.supported(one.payloads["a"], 1):
            found.append(one)
    return found


def test_identified_set_allows_all_false_reports_on_one_question(reports: list[Report]) -> None:
    """A twelfth of the reports on `a` may be false; with one in a hundred the set missed the truth."""
    found = fit(STUDY, summarize(STUDY, reports), questions=["a"], contamination=0.01, **FEW)["a"].identified
    assert found is not None
    low, high = found.sets["p"]
    assert low <= TRUTH <= high
    assert "all of them on this question (8.33 % of its reports)" in found.condition
    assert found.to_document()["of_this_question"] == pytest.approx(1 / 12)


def test_no_set_is_given_if_half_the_reports_may_be_false(reports: list[Report]) -> None:
    found = fit(STUDY, summarize(STUDY, reports), questions=["b"], contamination=0.06, **FEW)["b"].identified
    assert found is not None
    assert not found.sets
    assert "could be half of those on this question" in found.on_page()


def test_summary_states_how_far_false_reports_could_move_a_share(
    reports: list[Report], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = mechanisms_of(STUDY)["a"]
    assert "If 1 % of the reports were false, all of them on this question, the share" in influence_in_words(
        mechanism, 0.01, 0.1
    )
    monkeypatch.chdir(tmp_path)
    Path("study.json").write_text(STUDY.to_json())
    Path("reports.ndjson").write_text("".join(f"{one.to_json()}\n" for one in reports))
    assert main(["summarize", "study.json", "reports.ndjson", "--out", "summary.json"]) == 0
    said = capsys.readouterr().out
    assert said.count("all of them on this question") == len(NAMES)
