"""The pack for an ethics board: statements follow the study, with blanks for what the owner must write."""

from math import exp

import pytest

from ldp_client.mechanisms import mechanism_for
from ldpkit.cli import main
from ldpkit.dossier import _sure, sections_of
from schemas import Study
from tests import studies


def text_of(study):
    return "\n".join(
        " | ".join(["#" + section.title, part.kind, part.text, *[cell for row in part.rows for cell in row]])
        for section in sections_of(study)
        for part in section.parts
    )


PLAIN = Study(studies.document(studies.YES_NO))


def test_stated_certainty_is_never_too_low():
    """Against Bayes' theorem for a question whose ε is reached exactly."""
    mechanism = mechanism_for(PLAIN.questions[0])
    truth = float(mechanism.p)
    for before in (0.01, 0.1, 0.5, 0.9):
        exact = before * truth / (before * truth + (1 - before) * (1 - truth))
        stated = float(_sure(before, float(mechanism.privacy.epsilon)).removesuffix(" %")) / 100
        assert exact - 1e-12 <= stated <= exact + 0.005
    assert exp(1) == pytest.approx(truth / (1 - truth))


def test_pack_states_only_what_applies_to_the_study():
    said = text_of(PLAIN)
    assert "No public value is sent" in said
    assert "every answer exactly" not in said
    assert "Several records of one person" not in said
    public = Study({**PLAIN.document, "public": [{"id": "region", "choices": ["a", "b"]}]})
    assert "Nothing about a person is sent in clear" not in text_of(public)
    assert "sent as it is, without chance: region" in text_of(public)
    many = Study(studies.document(studies.YES_NO, studies.ONE_OF))
    assert "all questions together" in text_of(many)


def test_filled_in_pack_is_not_overwritten(tmp_path, capsys):
    title = {"title": "<script>alert(1)</script> | *x*"}
    (tmp_path / "study.json").write_text(Study({**PLAIN.document, **title}).to_json())
    command = ["dossier", str(tmp_path / "study.json"), "--out", str(tmp_path / "dossier")]
    assert main(command) == 0
    assert "<script" not in (tmp_path / "dossier" / "dossier.html").read_text()
    assert "\\| \\*x\\*" in (tmp_path / "dossier" / "dossier.md").read_text()
    (tmp_path / "dossier" / "dossier.md").write_text("filled in")
    assert main(command) == 3
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "dossier" / "dossier.md").read_text() == "filled in"


@pytest.mark.parametrize("purpose", ["# of reused passwords", "- to learn | more"])
def test_texts_of_a_study_are_no_markup_of_the_dossier(purpose):
    plain = sections_of(Study(studies.document(studies.YES_NO, purpose="To learn more")))
    marked = sections_of(Study(studies.document(studies.YES_NO, purpose=purpose)))
    assert [section.title for section in marked] == [section.title for section in plain]
    shown = [part.text for section in marked for part in section.parts if part.kind == "text"]
    assert purpose in shown
