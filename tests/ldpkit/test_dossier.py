"""The drafted consent states the total of all questions, and which are asked again."""

import pytest

from ldpkit.dossier import sections_of
from schemas import Study
from tests import studies


def consent_of(*questions, **fields):
    """The parts of the drafted consent."""
    found = sections_of(Study(studies.document(*questions, **fields)))
    (section,) = [one for one in found if one.title.startswith("Consent")]
    return section.parts


@pytest.mark.attack(2)
def test_drafted_consent_has_the_total_of_all_questions():
    """Show each of six questions alone, 73.2 % sure, and not that all together leave 99.76 %."""
    parts = consent_of(*[{**studies.YES_NO, "id": f"q{place}"} for place in range(6)], **studies.ASKER)
    rows = next(part.rows for part in parts if part.kind == "table")
    assert "73.2 % sure" in rows[0][1]
    assert rows[-1][0] == "all questions together"
    assert "99.76 % sure" in rows[-1][1]


def test_drafted_consent_has_stated_facts_and_blanks():
    said = [part.text for part in consent_of(studies.YES_NO, **studies.ASKER)]
    assert "contact: study@example.org" in said
    assert "reports are deleted 365 days after the day they arrived" in said
    assert any("whom to ask, how long" in part.text for part in consent_of(studies.YES_NO))


def test_consent_names_the_questions_that_are_asked_again():
    mixed = Study(studies.document(studies.MEMOIZED, studies.YES_NO))
    asked = next(one for one in sections_of(mixed) if one.title.startswith("What is asked"))
    told = " ".join(part.text for part in asked.parts)
    assert "answers habit (memoized) once in each version" in told
    assert "the other questions once in all versions" in told
    assert any("all reports of these together" in part.text for part in consent_of(studies.MEMOIZED))
