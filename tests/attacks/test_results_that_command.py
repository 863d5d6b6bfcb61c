"""To have whoever repeats a posterior.json run other commands, write elsewhere or read other files."""

import json

import pytest

from inference.results.made import made_from
from inference.results.reproducing import reproduce
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises

INPUT = {"name": "study.json", "sha256": "0" * 64}
GOOD = {"day": "2026-01-01", "versions": {}, "inputs": [INPUT], "files": [0], "options": [["--seed", "1"]]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"options": [["--out", "/elsewhere"]]},
        {"options": [["--seed=1\n--out", "x"]]},
        {"options": [["--help"]]},
        {"options": [["--wave", "a=", 7]]},
        {"options": [["--wave", "a=", -1]]},
        {"options": [["--wave", "a=", True]]},
        {"options": [["--table", "/etc/passwd"]]},
        {"options": [["--wave", "a=/etc/passwd,", 0]]},
        {"options": [["--wave", "a=/etc/passwd,b=", 0]]},
        {"options": [["--prior", "/etc/passwd"]]},
        {"options": [[]]},
        {"options": ["--seed"]},
        {"files": [1]},
        {"files": ["/etc/passwd"]},
        {"inputs": [{"name": "x"}]},
    ],
)
def test_only_options_of_a_fit_and_files_of_stated_digests_are_taken(wrong, tmp_path):
    assert made_from(GOOD).files == (0,)
    whole = {"study": "x", "seed": 0, "questions": {}, "made": {**GOOD, **wrong}}
    (tmp_path / "posterior.json").write_text(json.dumps(whole))
    with pytest.raises(InputError, match="does not say how it was made"):
        reproduce(tmp_path / "posterior.json", [])


def test_an_inputs_name_leads_to_no_other_folder(tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "fit").mkdir()
    stated = {**GOOD, "inputs": [{"name": "../../secret", "sha256": "0" * 64}]}
    whole = {"study": "x", "seed": 0, "questions": {}, "made": stated}
    (tmp_path / "fit" / "posterior.json").write_text(json.dumps(whole))
    with raises(InputError, "result.input_changed"):
        reproduce(tmp_path / "fit" / "posterior.json", [])
