"""The dossier's statements follow the study, with blanks for what the owner must write."""

from math import exp

import pytest

from ldp_client.mechanisms import mechanism_for
from ldpkit.cli import main
from ldpkit.dossier import _sure, dossier_of
from schemas import Study
from tests import studies

PLAIN = Study(studies.document(studies.YES_NO))
SIX = [{**studies.YES_NO, "id": f"q{number}"} for number in range(6)]
PUBLIC = {"public": [{"id": "region", "choices": ["a", "b"]}]}


@pytest.mark.attack(2)
def test_drafted_consent_has_the_total_of_all_questions():
    """Show each of six questions alone, 73.2 % sure, and not that all together leave 99.76 %."""
    text = dossier_of(Study(studies.document(*SIX, **studies.ASKER)))
    consent = text.partition("Consent text, a draft\n")[2].partition("\n## ")[0]
    rows = [line for line in consent.splitlines() if line.startswith("|")]
    assert "73.2 % sure" in rows[2]
    assert rows[-1].startswith("| all questions together |")
    assert "99.76 % sure" in rows[-1]


def test_stated_certainty_is_never_too_low():
    """Against Bayes' theorem for a question whose ε is reached exactly."""
    mechanism = mechanism_for(PLAIN.questions[0])
    truth = float(mechanism.p)
    for before in (0.01, 0.1, 0.5, 0.9):
        exact = before * truth / (before * truth + (1 - before) * (1 - truth))
        stated = float(_sure(before, float(mechanism.privacy.epsilon)).removesuffix(" %")) / 100
        assert exact - 1e-12 <= stated <= exact + 0.005
    assert exp(1) == pytest.approx(truth / (1 - truth))


@pytest.mark.parametrize(
    ("questions", "fields", "stated", "absent"),
    [
        ([studies.YES_NO], {}, ["No public value is sent", "whom to ask, how long"], ["Several records"]),
        # Texts of a study are no markup.
        ([studies.YES_NO], {"purpose": "# of reused passwords"}, ["\n\\# of"], []),
        ([studies.YES_NO], {"purpose": "<b> *x*"}, ["\n&lt;b&gt; \\*x"], []),
        ([studies.YES_NO], PUBLIC, ["sent as it is, without chance: region"], ["No public value is sent"]),
        ([studies.YES_NO], studies.ASKER, ["contact: study@example.org", "reports are deleted 365 days"], []),
        (
            [studies.MEMOIZED, studies.YES_NO],
            {},
            ["answers habit (memoized) once in each version", "the other questions once in all versions"],
            [],
        ),
    ],
)
def test_dossier_states_what_applies_to_the_study(questions, fields, stated, absent):
    text = dossier_of(Study(studies.document(*questions, **fields)))
    assert [words for words in stated if words not in text] == []
    assert [words for words in absent if words in text] == []


def test_command_writes_the_dossier(tmp_path, capsys):
    study, out = tmp_path / "study.json", tmp_path / "dossier.md"
    study.write_text(PLAIN.to_json())
    assert main(["dossier", str(study), "--out", str(out)]) == 0
    assert out.read_text() == dossier_of(PLAIN)
    assert "TO WRITE" in capsys.readouterr().out
