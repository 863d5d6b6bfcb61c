"""What `ldpkit check` warns the author of a study about."""

import pytest

from ldp_client.documents.errors import StudyError
from schemas import Study
from schemas.warnings import require_keys, warnings_of
from tests import studies
from tests.kit.commands import check
from tests.kit.errors import raises
from tests.schemas.channels import channel, tokens

LOOSE = {**studies.NUMBER, "mechanism": {"name": "gaussian", "epsilon": "1", "delta": "0.99"}}
BOTH = [studies.with_epsilon(studies.NUMBER, "64"), studies.with_epsilon(studies.YES_NO, "8")]
MANY = [{**studies.with_epsilon(studies.NUMBER, "8"), "id": f"q{place}"} for place in range(100)]


def warned(*questions, **fields):
    return warnings_of(Study(studies.document(*questions, **fields)))


@pytest.mark.attack(8)
@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ([studies.with_epsilon(studies.NUMBER, "8")], []),
        ([studies.with_epsilon(studies.NUMBER, "9")], ["hours: epsilon 9 "]),
        ([LOOSE], ["hours: delta 0.99 "]),
        (MANY, ["all questions together: epsilon 800 "]),
        (BOTH, ["hours: epsilon 64 ", "all questions together: epsilon 72 "]),
    ],
)
def test_noise_that_hides_hardly_anything_warns(questions, said):
    """Have people agree to an epsilon or delta that hides nothing, of one question or of many together."""
    lines = warned(*questions, **studies.ASKER)
    assert [line for line in lines if "hardly any privacy" in line] == lines
    assert len(lines) == len(said)
    assert all(text in line for text, line in zip(said, lines))


def stratum(name, most, **more):
    return {"id": name, "bounds": ["0", str(most)], "step": "1", "source": "ticket", **more}


@pytest.mark.attack(12)
def test_ticket_fields_that_identify_a_person_warn():
    """Have tickets carry a number of one person, in one field or in several, as a part of the sample."""
    (line,) = warned(studies.YES_NO, public=[stratum("part", 999_999)])
    assert "1,000,000 combinations of part" in line
    (line,) = warned(studies.YES_NO, public=[stratum("stratum", 99), stratum("cluster", 10)])
    assert "1,100 combinations of stratum, cluster" in line
    asked = {key: value for key, value in stratum("part", 999_999).items() if key != "source"}
    for fields in ([stratum("part", 9)], [asked], [stratum("stratum", 99), stratum("cluster", 9)]):
        assert not warned(studies.YES_NO, public=fields)


@pytest.mark.attack(8)
def test_question_that_is_also_asked_in_clear_warns_in_each_language():
    """Ask without noise what is asked with noise, in the words of one language only."""
    same = "Haben Sie je betrogen?"
    private = {**studies.YES_NO, "text": {"en": "Have you ever cheated?", "de": same}}
    clear = {"id": "asked", "text": {"en": "Did it happen?", "de": same}, "choices": ["no", "yes"]}
    (line,) = warned(private, public=[clear], languages=["en", "de"])
    assert "asked asks without noise what ever asks with noise" in line
    other = {**clear, "text": {"en": "Did it happen?", "de": "Ist es geschehen?"}}
    assert not warned(private, public=[other], languages=["en", "de"])
    # Without texts nothing is asked in the same words.
    assert not warned(studies.YES_NO, public=[{"id": "asked", "choices": ["no", "yes"]}])
    features = [{**studies.FEATURES[0], "text": "How old are you?"}, studies.FEATURES[1]]
    clear = {"id": "years_old", "text": "How old are you?", "choices": ["young", "old"]}
    (line,) = warned({**studies.LINEAR, "features": features}, public=[clear])
    assert "years_old asks without noise what rating asks" in line


@pytest.mark.parametrize(("hours", "days", "is_warned"), [(72, 1, True), (72, 6, False), (12, 1, False)])
def test_retention_shorter_than_the_batches_warns(hours, days, is_warned):
    """A participant in the last days would spend epsilon on a report that is rejected."""
    fields = {"closes": "2030-01-31", "retention": {"days": days}}
    lines = warned(studies.YES_NO, channel=channel(batches={"hours": hours}), **fields)
    assert ["retention" in line for line in lines] == [True] * is_warned


REGION = {"id": "region", "choices": ["north", "south", "west"], "source": "ticket"}
SEX = {"id": "sex", "choices": ["f", "m"], "source": "ticket"}
AGE = {"id": "age", "bounds": ["18", "19"], "step": "0.5", "source": "ticket"}


def study_of(*strata, public=(REGION,)):
    tickets = channel(tickets=tokens(*strata))
    return Study(studies.document(studies.YES_NO, channel=tickets, public=list(public)))


def test_stratum_without_key_is_rejected(tmp_path):
    regions = [{"region": name} for name in REGION["choices"]]
    assert [check(tmp_path, study_of(*regions[:count])) for count in (2, 3)] == [3, 0]
    ages = [{"age": age} for age in ("18", "18.5", "19")]
    require_keys(study_of(*ages, public=[AGE]))
    with raises(StudyError, "study.stratum_key_missing", "age=18.5", "1 of 3"):
        require_keys(study_of(ages[0], ages[2], public=[AGE]))
    require_keys(Study(studies.document(studies.YES_NO, public=[REGION])))


def test_combinations_without_key_warn():
    both = [{"region": region, "sex": sex} for region in REGION["choices"] for sex in SEX["choices"]]
    study = study_of(*both[:3], both[5], public=[REGION, SEX])
    require_keys(study)
    assert ["2 of 6 strata have no key:" in line for line in warnings_of(study)] == [True]
    assert not warnings_of(study_of(*both, public=[REGION, SEX]))
