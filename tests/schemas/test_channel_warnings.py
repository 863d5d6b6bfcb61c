"""Each stratum that tickets carry needs a token key: without one, no report of its people can leave."""

from __future__ import annotations

import json

from ldp_client.documents.errors import StudyError
from ldpkit.cli import main
from schemas import Study
from schemas.warnings import require_keys, warnings_of
from tests import studies
from tests.kit.errors import raises
from tests.schemas.channels import channel, tokens

REGION = {"id": "region", "choices": ["north", "south", "west"], "source": "ticket"}
SEX = {"id": "sex", "choices": ["f", "m"], "source": "ticket"}
AGE = {"id": "age", "bounds": ["18", "19"], "step": "0.5", "source": "ticket"}
NORTH, SOUTH, WEST = ({"region": name} for name in REGION["choices"])


def study_of(*strata, public=(REGION,)):
    """A study with a key for each of these strata."""
    return Study(
        studies.document(studies.YES_NO, channel=channel(tickets=tokens(*strata)), public=list(public))
    )


def test_check_rejects_a_stratum_without_key(tmp_path, capsys):
    path = tmp_path / "study.json"
    for strata, code in (([NORTH, SOUTH], 3), ([NORTH, SOUTH, WEST], 0)):
        path.write_text(json.dumps(study_of(*strata).document))
        assert main(["check", str(path)]) == code
        said = capsys.readouterr()
        assert ("lack a key for region=west" in said.err) is bool(code)
        assert ("each of the 3 strata has a separate key" in said.out) is not bool(code)


def test_number_stratum_without_key_is_rejected():
    ages = [{"age": age} for age in ("18", "18.5", "19")]
    require_keys(study_of(*ages, public=[AGE]))
    with raises(StudyError, "study.stratum_key_missing", "age=18.5", "1 of 3"):
        require_keys(study_of(ages[0], ages[2], public=[AGE]))


def test_field_not_from_ticket_needs_no_key():
    study = Study(studies.document(studies.YES_NO, public=[REGION]))
    assert not warnings_of(study)
    require_keys(study)


def test_combinations_without_key_warn():
    both = [{"region": region, "sex": sex} for region in REGION["choices"] for sex in SEX["choices"]]
    study = study_of(*both[:3], both[5], public=[REGION, SEX])
    require_keys(study)
    (line,) = [line for line in warnings_of(study) if "no key" in line]
    assert "2 of 6 strata have no key:" in line
    whole = study_of(*both, public=[REGION, SEX])
    assert not [line for line in warnings_of(whole) if "no key" in line]
