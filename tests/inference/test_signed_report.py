"""The report that an analyst signs: what it leads with, its escaped text, and its numbers as CSV."""

import csv
import io
import re

import numpy as np
import pytest

from inference.results.diagnostics import diagnose
from inference.results.folder import save_report
from inference.results.headline import headline
from inference.results.page import render_page
from inference.results.plots import pictures_of
from inference.results.posterior import Posterior
from inference.results.prior_notes import informativeness
from inference.results.verdict import CARE, Finding
from schemas import Study
from tests import studies

HOSTILE = ["=1+1", "a & b_c%$#{}~^\\", "[x] | <b>*y*</b> `z`"]
STUDY = Study(
    studies.document(
        {**studies.YES_NO, "text": "Ever | *been* \\input{x} <i>there</i>?"},
        {**studies.ONE_OF, "choices": HOSTILE},
    )
)


def posterior_of(question, names, prior_sd=1.0, study=STUDY):
    random = np.random.default_rng(4)
    draws = {name: random.normal(0.3, 0.02, (4, 1000)) for name in names}
    prior_draws = {name: random.normal(0.3, prior_sd, 1000) for name in names}
    found = diagnose(draws, np.zeros((4, 1000), bool), informativeness(draws, prior_draws))
    model = study.question(question).model.name
    prior = dict.fromkeys(names, prior_sd)
    return Posterior(question, model, 500, draws, prior, found, study.digest, 0)


POSTERIORS = {
    "ever": posterior_of("ever", ["p"]),
    "colour": posterior_of("colour", [f"p[{label}]" for label in HOSTILE]),
}


@pytest.mark.parametrize("name", ["convergence", "fit", "informativeness"])
def test_headline_of_bad_result_shows_no_numbers(name):
    question = STUDY.question("ever")
    good = headline(question, POSTERIORS["ever"])
    assert good.shown == "ok"
    assert "the share of yes is 30" in good.says.lower()
    bad = headline(question, POSTERIORS["ever"].with_findings([Finding(name, "why")]))
    assert bad.shown == "bad"
    assert not re.search(r"\d", bad.says)


def test_only_fully_good_results_are_green(pictures):
    question = STUDY.question("ever")
    partial = headline(question, POSTERIORS["ever"].with_findings([Finding("informativeness", "why", CARE)]))
    assert partial.shown == "note"
    bad = {"ever": POSTERIORS["ever"].with_findings([Finding("convergence", "why")])}
    page = render_page(STUDY, bad, pictures=pictures)
    assert 'class="ok"' not in page


@pytest.fixture(scope="module")
def pictures():
    return {name: pictures_of(found, None) for name, found in POSTERIORS.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("report")
    save_report(STUDY, POSTERIORS, made)
    return made


def test_csv_has_every_parameter_and_no_spreadsheet_formula(folder):
    head, *rows = csv.reader(io.StringIO((folder / "tables.csv").read_text()))
    assert [row[head.index("parameter")] for row in rows] == [
        name for one in POSTERIORS.values() for name in one.draws
    ]
    assert float(rows[0][head.index("mean")]) == POSTERIORS["ever"].draws["p"].mean()
    assert not [cell for row in rows for cell in row if cell[:1] in ("=", "+", "@")]


def test_hostile_list_title_is_escaped(pictures):
    title = HOSTILE[2] + " <img src=x onerror=x()>"
    listed = [{"title": title, "questions": ["ever"], "any_of": True}]
    study = Study(studies.document(studies.YES_NO, sections=listed))
    found, drawn = {"ever": POSTERIORS["ever"]}, {"ever": pictures["ever"]}
    page = render_page(study, found, pictures=drawn)
    assert "is a list of boxes; people tick any number" in page
    assert "<img src=x" not in page
    assert "<b>" not in page
