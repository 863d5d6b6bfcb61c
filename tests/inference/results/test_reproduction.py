"""`ldpkit fit --check`: the same call on the same files gives the same result, or prints the differences."""

import json
import shlex

import click
import numpy as np
import pytest

from inference.results.provenance import made_by, words_of
from inference.results.reproduction import compared
from ldpkit.cli import main
from ldpkit.cli.surveys import words_of_call
from tests import studies
from tests.kit.commands import leaves

QUICK = ["--method", "gaussian_approx", "--draws", "400", "--question", "ever"]
EVER = {
    "verdict": {"word": "usable"},
    "parameters": {"p": {"mean": 0.5, "sd": 0.1, "ess_bulk": 1000.0}},
}
WHOLE = {"study_digest": "x", "questions": {"ever": EVER}}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "study.json").write_text(json.dumps(studies.document(studies.YES_NO)))
    (folder / "answers.csv").write_text("ever\n" + "no\nyes\nyes\n" * 200)
    files = [str(folder / name) for name in ("study.json", "answers.csv", "reports.ndjson")]
    assert main(["perturb", *files[:2], "--out", files[2]]) == 0
    assert main(["fit", files[0], files[2], "--out", str(folder / "fit"), *QUICK]) == 0
    return folder


@pytest.mark.slow
def test_repeated_fit_is_compared_with_the_earlier_one(fitted, tmp_path, capsys):
    def again(out, check):
        files = [str(fitted / "study.json"), str(fitted / "reports.ndjson")]
        return main(["fit", *files, "--out", str(out), "--check", str(check), *QUICK])

    assert again(tmp_path / "again", fitted / "fit" / "posterior.json") == 0
    assert "posterior.json, to the last bit" in capsys.readouterr().out
    document = json.loads((fitted / "fit" / "posterior.json").read_text())
    document["questions"]["ever"]["parameters"]["p"]["mean"] += 0.05
    path = tmp_path / "posterior.json"
    path.write_text(json.dumps(document))
    assert again(tmp_path / "third", path) == 4
    assert "ever: p: mean was" in capsys.readouterr().out
    with (fitted / "reports.ndjson").open("a") as file:
        file.write("\n")
    assert again(tmp_path / "fourth", path) == 3
    assert "was made from other files (study.json, reports.ndjson)" in capsys.readouterr().err
    assert not (tmp_path / "fourth").exists()


@pytest.mark.parametrize(
    ("parameter", "word", "says"),
    [
        ({}, "usable", "to the last bit"),
        ({"mean": float(np.nextafter(0.5, 1))}, "usable", "within Monte Carlo error"),
        ({"mean": 0.51}, "usable", "within Monte Carlo error"),
        ({"mean": 0.53}, "usable", "NOT"),
        ({"sd": 0.11}, "usable", "within Monte Carlo error"),
        ({"sd": 0.12}, "usable", "NOT"),
        ({"mean": 0.9, "ess_bulk": 1e-6}, "usable", "NOT"),
        ({}, "not usable", "NOT"),
    ],
)
def test_monte_carlo_error_is_told_from_a_changed_result(parameter, word, says, tmp_path):
    (tmp_path / "posterior.json").write_text(json.dumps(WHOLE))
    entry = {"verdict": {"word": word}, "parameters": {"p": {**EVER["parameters"]["p"], **parameter}}}
    same, lines = compared("before.json", {**WHOLE, "questions": {"ever": entry}}, tmp_path)
    assert same is (says != "NOT")
    assert says in lines[0]


def test_stored_call_names_files_by_their_names(tmp_path):
    for name in ("a.json", "r.ndjson", "prior.json"):
        (tmp_path / name).write_text(name)
    wave = ["--wave=2019=", tmp_path / "a.json", ",", tmp_path / "r.ndjson"]
    options = words_of(seed=3, formula="a ~ b", family=None, prior=("x=flat",))
    made = made_by("survey", [*options, ["--prior=", tmp_path / "prior.json"], wave])
    assert [one.name for one in made.inputs] == ["prior.json", "a.json", "r.ndjson"]
    assert shlex.split(made.call) == [
        *("ldpkit", "survey", "--seed=3", "--formula=a ~ b"),
        *("--prior=x=flat", "--prior=prior.json", "--wave=2019=a.json,r.ndjson"),
    ]


# Options of `fit` and `survey` that change no number of posterior.json.
SHOWN = {"--out", "--check", "--strict"}


def options_of(name):
    """{option: parameter} of a command."""
    ((_, command),) = [(words, each) for words, each in leaves() if words == (name,)]
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    return {each.opts[0]: str(each.name) for each in options}


def test_every_option_of_survey_that_decides_numbers_is_stored():
    options = {option: name for option, name in options_of("survey").items() if option not in SHOWN}
    given = {name: "x" for name in options.values()} | {"document": "s", "data": "r"}
    given |= {"prior": ("x=flat",), "waves": ("x=d.json,y.csv",)}
    words = words_of_call(given, {"seed": 1, "method": "nuts", "draws": 100}, 0.9)
    assert {str(parts[0]).split("=")[0] for parts in words} == {*options, "s", "r"}


def test_every_option_of_fit_that_decides_numbers_is_stored(fitted):
    call = json.loads((fitted / "fit" / "posterior.json").read_text())["made"]["call"]
    stated = {word.split("=")[0] for word in shlex.split(call) if word.startswith("--")}
    assert options_of("fit").keys() == {*stated, *SHOWN, "--contamination"}
