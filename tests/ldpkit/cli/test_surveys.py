"""`ldpkit survey` with a formula or a crossed table: options that do not go together, and the folder."""

import json
from pathlib import Path

import pytest

from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from ldpkit.cli.surveys import stated_priors
from tests.inference.analyses.simulated import design, write
from tests.kit.errors import raises

FIT = ["d.json", "s.csv"]


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """A table of two private columns and a public one, its design and a census."""
    monkeypatch.chdir(tmp_path)
    write(Path("s.csv"), ["a", "b", "place"], [[at % 2, at // 2 % 2, at // 4 % 2] for at in range(80)])
    column = {"design": "warner", "p": "0.9"}
    Path("d.json").write_text(design(a=column, b=column))


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 2, "give --formula"),
        (["--formula", "a ~ 1"], 2, "give a study and its reports"),
        ([*FIT, "--wave", "w=d.json,s.csv", "--formula", "a ~ 1"], 2, "or --wave for each"),
        ([*FIT, "--crosstab", "a,b", "--formula", "a ~ 1"], 2, "give --formula"),
        ([*FIT, "--crosstab", "a,b", "--prior", "flat"], 2, "--prior is for a --formula"),
        ([*FIT, "--crosstab", "a"], 2, "two or more"),
        (["s.json", "r.ndjson", "--by", "place"], 2, "give --formula"),
        ([*FIT, "--formula", "a ~ 1", "--strata", "place"], 2, "--strata is not supported: use R's survey"),
        ([*FIT, "--formula", "a ~ 1", "--cluster", "place"], 2, "--cluster is not supported: use R's survey"),
        ([*FIT, "--formula", "a ~ age"], 3, "no column 'age'"),
        ([*FIT, "--formula", "a ~ place", "--prior", "old=flat"], 3, "'old'"),
        ([*FIT, "--formula", "a ~ place", "--prior", "none.json"], 3, "none.json"),
        ([*FIT, "--crosstab", "a,place"], 2, "different private choices"),
        ([*FIT, "--formula", "a ~ 1", "--method", "marginal"], 2, "'marginal' is no method"),
        ([*FIT, "--crosstab", "a,b", "--method", "marginal"], 2, "'marginal' is no method"),
    ],
)
def test_wrong_options_are_named_and_leave_no_folder(options, code, said, capsys):
    assert main(["survey", *options, "--out", "x"]) == code
    assert said in capsys.readouterr().err
    assert not Path("x").exists()


def test_flat_prior_together_with_others_is_rejected():
    Path("p.json").write_text('{"age": {"distribution": "normal", "loc": 0, "scale": 1}}')
    for given in (["flat", "p.json"], ["age=flat", "flat"]):
        with raises(InputError, "survey.flat_prior_with_others"):
            stated_priors(given)
    assert stated_priors(["flat"], {"age": "flat"}) == "flat"
    assert stated_priors(["p.json", "sex=flat"], {"age": "flat"})["age"]["loc"] == 0


@pytest.mark.slow
def test_crossed_table_writes_the_usual_files(capsys):
    options = ["--crosstab", "a,b", "--by", "place", "--method", "gaussian_approx", "--draws", "100"]
    assert main(["survey", *FIT, *options, "--level", "0.8", "--out", "x"]) in (0, 4)
    printed = capsys.readouterr().out
    assert "answer yes: report 0 1/10, 1 9/10" in printed
    assert "80 % interval" in printed
    entry = json.loads(Path("x/posterior.json").read_text())["questions"]["a-b"]
    assert "odds ratio a and b, place = 1" in entry["quantities"]
    names = {path.name for path in Path("x").iterdir()}
    assert names == {"posterior.json", "report.html", "tables.csv", "a-b.nc", "a-b.png"}
