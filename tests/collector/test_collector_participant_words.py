"""What the participant's page promises: no more than a device keeps over all versions of a study."""

import html
import re

import pytest

from ldp_client.words.studies import odds
from tests import studies
from tests.collector.conftest import TOKEN
from tests.studies import MEMOIZED, YES_NO

OTHER = {**MEMOIZED, "id": "other"}


@pytest.fixture
def promise(empty):
    """A function study document → the words of the page's promise and of the hint below the form."""

    def of(document):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert empty.client.post("/v1/studies", json=document, headers=headers).status_code == 201
        page = empty.client.get(f"/s/{document['id']}").get_data(as_text=True)
        (text,) = re.findall(r'<section class="promise".*?</section>', page, re.S)
        hint = re.findall(r'<p class="hint">(Nothing is sent yet.*?)</p>', page, re.S)
        return " ".join(html.unescape(re.sub("<[^>]+>", " ", text + " ".join(hint))).split())

    return of


def test_a_study_that_draws_one_memoized_question_promises_the_sum(promise):
    """Each round draws another question, until all are answered."""
    said = promise(studies.document(MEMOIZED, OTHER, ask_one=True))
    assert odds(4.0) in said
    assert odds(2.0) not in said
    assert "by chance in each round" in said


def test_the_promise_is_for_these_questions_alone(promise):
    """An earlier or later version may ask others, which cost more."""
    said = promise(studies.document(MEMOIZED))
    assert f"{odds(2.0)} This holds for all reports to these questions together" in said
    assert "Other questions that this study asked before, or asks later, add to it." in said


def test_a_mixed_study_does_not_promise_that_it_asks_only_once(promise):
    said = promise(studies.document(MEMOIZED, YES_NO))
    assert "To 1 of these questions a noisy answer is drawn once and kept" in said
    assert "leaves, once" not in said
    assert "answer only once" not in said
    plain = promise(studies.document(YES_NO, id="plain"))
    assert "leaves, once" in plain
    assert "these questions together" not in plain
