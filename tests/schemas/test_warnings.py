"""What `ldpkit check` warns the author of a study about."""

import pytest

from schemas import Study
from schemas.warnings import warnings_of
from tests import studies

WEAK = studies.with_epsilon(studies.NUMBER, "64")
LOOSE = {**studies.NUMBER, "mechanism": {"name": "gaussian", "epsilon": "1", "delta": "0.99"}}
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
        (
            [WEAK, studies.with_epsilon(studies.YES_NO, "8")],
            ["hours: epsilon 64 ", "all questions together: epsilon 72 "],
        ),
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
