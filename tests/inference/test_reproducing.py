"""`ldpkit reproduce`: the same fit again, from what posterior.json says of how it was made."""

import argparse
import copy
import io
import json
import shutil
import sys

import numpy as np
import pytest

from inference.results import reproducing
from inference.results.made import (
    FILES,
    OPTIONS,
    POSITIONAL,
    REPEATED,
    VALUES,
    Input,
    made_by,
    made_from,
)
from inference.results.netcdf import netcdf_of
from inference.results.reproducing import Repeated, compared, found_input, reproduce
from inference.results.tree import Layout
from ldp_client.cli import build_parser, main
from ldp_client.documents.errors import InputError, UsageError
from schemas import Study
from tests import studies
from tests.kit.errors import raises

STUDY = Study(studies.document(studies.YES_NO))
ANSWERS = "".join('{"ever": "yes"}\n' if place % 3 else '{"ever": "no"}\n' for place in range(600))

QUICK = ["--method", "laplace", "--draws", "400", "--seed", "5", "--contamination", "0.02"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "study.json").write_text(STUDY.to_json())
    (folder / "answers.ndjson").write_text(ANSWERS)
    files = [str(folder / "study.json"), str(folder / "reports.ndjson")]
    assert main(["perturb", files[0], str(folder / "answers.ndjson"), "--out", files[1]]) == 0
    assert main(["fit", *files, "--out", str(folder / "fit"), *QUICK, "--question", "ever"]) == 0
    return folder


@pytest.mark.slow
def test_a_fit_is_repeated_to_the_last_bit_from_its_document_alone(fitted, capsys):
    assert main(["reproduce", str(fitted / "fit" / "posterior.json")]) == 0
    assert "the same, to the last bit" in capsys.readouterr().out


@pytest.mark.slow
def test_a_quiet_one_says_what_it_found_alone(fitted, capfd):
    """The fit is another process, which tells its own progress."""
    assert main(["reproduce", str(fitted / "fit" / "posterior.json"), "--quiet"]) == 0
    assert capfd.readouterr() == ("the same, to the last bit\n", "")


@pytest.mark.slow
def test_a_number_that_was_changed_is_not_reproduced(fitted, capsys, monkeypatch):
    def fit(_made, _files, folder, _more):
        shutil.copytree(fitted / "fit", folder)

    monkeypatch.setattr(reproducing, "_fit", fit)
    whole = json.loads((fitted / "fit" / "posterior.json").read_text())
    whole["questions"]["ever"]["parameters"]["p"]["mean"] += 0.05
    (fitted / "fit" / "changed.json").write_text(json.dumps(whole))
    assert main(["reproduce", str(fitted / "fit" / "changed.json")]) == 4
    assert "p: mean was" in capsys.readouterr().out


def test_other_reports_are_refused_by_their_digest(fitted, tmp_path, capsys):
    (tmp_path / "posterior.json").write_text((fitted / "fit" / "posterior.json").read_text())
    for name in ("study.json", "reports.ndjson"):
        (tmp_path / name).write_text((fitted / name).read_text())
    with (tmp_path / "reports.ndjson").open("a") as file:
        file.write("\n")
    assert main(["reproduce", str(tmp_path / "posterior.json")]) == 3
    assert "is not the file that was fitted" in capsys.readouterr().err
    (tmp_path / "reports.ndjson").unlink()
    assert main(["reproduce", str(tmp_path / "posterior.json")]) == 2
    assert "give its path too" in capsys.readouterr().err


def test_a_file_is_known_by_its_digest_whatever_its_name(fitted, tmp_path):
    wanted = made_from(json.loads((fitted / "fit" / "posterior.json").read_text())["made"]).inputs[1]
    renamed = tmp_path / "other.ndjson"
    renamed.write_bytes((fitted / "reports.ndjson").read_bytes())
    assert found_input(wanted, [str(fitted / "study.json"), str(renamed)], tmp_path) == str(renamed)


ROW = {"mean": 0.5, "sd": 0.1, "q05": 0.34, "q50": 0.5, "q95": 0.66, "ess_bulk": 1000.0, "ess_tail": 900.0}
VERDICT = {"chains": {"state": "good", "reasons": []}}
ENTRY = {"model": "bernoulli", "method": "nuts", "n": 5, "verdict": VERDICT, "parameters": {"p": ROW}}
WHOLE = {"study": "x", "questions": {"ever": ENTRY}}


def with_row(**changed):
    whole = copy.deepcopy(WHOLE)
    whole["questions"]["ever"]["parameters"]["p"].update(changed)
    return whole


def test_chance_is_told_from_another_result(tmp_path):
    # The standard error of a difference of means is 0.1 · √(2 / 1000) = 0.0045.
    said = {mean: compared(with_row(mean=mean), WHOLE, tmp_path, tmp_path)[1] for mean in (0.5, 0.51, 0.53)}
    assert said == {0.5: "bitwise", 0.51: "within Monte Carlo error", 0.53: "not the same"}
    other = copy.deepcopy(WHOLE)
    other["questions"]["ever"]["verdict"] = {"chains": {"state": "bad", "reasons": []}}
    assert compared(WHOLE, other, tmp_path, tmp_path)[1] == "not the same"
    assert compared(with_row(sd=None), WHOLE, tmp_path, tmp_path)[1] == "not the same"
    # What a file says of its own errors may be anything.
    wide = with_row(mean=0.9, ess_bulk=1e-6, ess_tail=1e-6)
    assert compared(wide, WHOLE, tmp_path, tmp_path)[1] == "not the same"


@pytest.mark.parametrize(
    ("member", "value"),
    [("ok", True), ("notes", ["3 of 40 reports answer another version"]), ("reasons", ["they do not fit"])],
)
def test_a_verdict_or_a_note_that_was_changed_is_not_the_same(tmp_path, member, value):
    other = with_row(mean=0.5001)
    other["questions"]["ever"][member] = value
    assert Repeated(said := compared(WHOLE, other, tmp_path, tmp_path)[1]).same is False
    assert said == ("not the same" if member == "ok" else "the same but for its sentences")
    # Of notes the numbers may be chance's.
    if member == "notes":
        again = copy.deepcopy(other)
        again["questions"]["ever"][member] = ["4 of 40 reports answer another version"]
        assert compared(again, other, tmp_path, tmp_path)[1] == "within Monte Carlo error"


def test_draws_that_were_changed_are_not_the_same(tmp_path):
    random = np.random.default_rng(2)

    def saved(folder, draws):
        folder.mkdir()
        (folder / "ever.nc").write_bytes(netcdf_of({}, Layout({"posterior": {"p": draws}}, {}, {})))
        return folder

    now = saved(tmp_path / "now", random.normal(0.5, 0.1, (4, 500)))
    same = saved(tmp_path / "same", random.normal(0.5, 0.1, (4, 500)))
    other = saved(tmp_path / "other", random.normal(0.6, 0.1, (4, 500)))
    assert compared(WHOLE, WHOLE, same, now)[1] == "within Monte Carlo error"
    assert compared(WHOLE, WHOLE, other, now)[1] == "not the same"


def test_a_command_is_kept_with_all_that_decides_its_numbers(tmp_path):
    for name in ("a.json", "r.ndjson", "prior.json"):
        (tmp_path / name).write_text(name)
    wave = f"2019={tmp_path / 'a.json'},{tmp_path / 'r.ndjson'}"
    given = {"wave": [wave], "prior": [str(tmp_path / "prior.json"), "x=flat"], "seed": 3, "formula": "a ~ b"}
    names = (*POSITIONAL, *FILES, *VALUES, *REPEATED)
    made = made_by(argparse.Namespace(**{**dict.fromkeys(names), **given}))
    assert [one.name for one in made.inputs] == ["prior.json", "a.json", "r.ndjson"]
    assert made.options == (
        ("--seed", "3"),
        ("--formula", "a ~ b"),
        ("--prior", 0),
        ("--prior", "x=flat"),
        ("--wave", "2019=", 1, ",", 2),
    )
    assert made_from(json.loads(json.dumps(made.to_document()))) == made


def test_a_result_that_does_not_say_how_it_was_made_is_refused(tmp_path):
    (tmp_path / "posterior.json").write_text(json.dumps({"study": "x", "seed": 0, "questions": {}}))
    with pytest.raises(InputError, match="does not say how it was made"):
        reproduce(tmp_path / "posterior.json", [])


@pytest.mark.slow
def test_reports_of_standard_input_are_fitted_and_said_to_be_gone(fitted, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((fitted / "reports.ndjson").read_bytes())))
    out = tmp_path / "fit"
    command = ["fit", str(fitted / "study.json"), "-", "--out", str(out), *QUICK, "--question", "ever"]
    assert main(command) == 0
    capsys.readouterr()
    assert main(["reproduce", str(out / "posterior.json"), str(fitted / "study.json")]) != 0
    assert "was read from a stream, which cannot be read again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("member", "value"), [("options", [[["x"], 0]]), ("options", [[3, "a"]]), ("inputs", [3]), ("files", [7])]
)
def test_what_a_hostile_document_says_of_itself_is_refused_in_one_line(
    fitted, tmp_path, capsys, member, value
):
    whole = json.loads((fitted / "fit" / "posterior.json").read_text())
    whole["made"][member] = value
    (tmp_path / "posterior.json").write_text(json.dumps(whole))
    assert main(["reproduce", str(tmp_path / "posterior.json")]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_parameters_that_are_none_are_not_the_same(tmp_path):
    for parameters in ({"p": 3}, {"p": None}, []):
        whole = copy.deepcopy(WHOLE)
        whole["questions"]["ever"]["parameters"] = parameters
        assert compared(whole, WHOLE, tmp_path, tmp_path)[1] == "not the same"


def test_what_came_through_a_pipe_is_said_to_be_gone(tmp_path):
    with raises(InputError, "result.input_from_stream"):
        found_input(Input("r", None), [], tmp_path)
    with raises(UsageError, "result.input_missing"):
        found_input(Input("r", "0" * 64), [], tmp_path)


def test_every_option_of_a_fit_is_kept_or_decides_no_number():
    (fits,) = [one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction)]
    options = {name for one in fits.choices["fit"]._actions for name in one.option_strings}
    shown = {"-h", "--help", "--out", "--plan", "--calibration", "--audit", "--json", "--quiet", "-q"}
    assert options - OPTIONS <= shown
    assert options >= OPTIONS
