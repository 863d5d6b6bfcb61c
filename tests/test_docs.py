"""The documentation is true: its Python runs, its commands and links exist, and so do the files it names."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ldp_client.cli import build_parser
from ldp_client.mechanisms import mechanism_for
from schemas import Study
from schemas.catalogue import ASKS, MECHANISMS, MODELS
from schemas.study_shape import STUDY
from tests import studies

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("**/*.md")])
PACKAGES = ("schemas", "ldp_client", "summaries", "collector", "inference")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.M | re.S)


def test_the_readmes_python_runs(tmp_path):
    (code,) = blocks(ROOT / "README.md", "python")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"'mean': ([0-9.]+)", done.stdout)
    # A quarter said yes; five standard errors of the noise are 0.23.
    assert 0.02 < float(found.group(1)) < 0.48


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_local_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text()):
        if "://" not in target:
            there = page.parent / target if target else page
            assert there.exists(), target
            assert not anchor or anchor in anchors(there), anchor


def anchors(page):
    """What headings are called in addresses: lower case, hyphens for spaces, no other signs."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_pages_exist(page):
    known = build_parser()._subparsers._group_actions[0].choices
    for command in re.findall(r"^(?:\w+=\S+ )*ldpkit ([a-z-]+)", "\n".join(blocks(page, "")), flags=re.M):
        assert command in known


def test_files_named_in_the_architecture_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for name in re.findall(rf"`((?:{'|'.join(PACKAGES)}|tests)/[\w/.]+)`", text):
        assert (ROOT / name).exists(), name


def test_the_architecture_names_every_folder_of_code():
    named = re.findall(r"`([\w/]+)`", (ROOT / "ARCHITECTURE.md").read_text())
    files = [path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    folders = {path.parent.as_posix() for path in files if "migrations" not in path.parts}
    assert folders - set(named) == set()


def test_the_guides_study_is_valid():
    (document,) = blocks(DOCS / "study.md", "json")
    assert [mechanism_for(question).name for question in Study.from_json(document).questions]
    question, *_ = blocks(DOCS / "models.md", "json")
    assert set(Study(studies.document(json.loads(question))).questions[0].model.prior) == {"mean", "sd"}


def test_the_guides_name_what_a_study_may_have():
    study, models = ((DOCS / name).read_text() for name in ("study.md", "models.md"))
    for name in (*STUDY.required, *STUDY.optional, *ASKS, *MECHANISMS):
        assert f"`{name}`" in study, name
    for model in MODELS.values():
        for name in (model.shape.required["name"].value, *model.shape.optional["prior"].optional):
            assert f"`{name}`" in models, name


def test_formulas_that_docstrings_cite_exist():
    sources = "".join(path.read_text() for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    sections = re.findall(r"(?:^## |\*\*)(\d[\w.]*?)\.? ", (DOCS / "methods.md").read_text(), flags=re.M)
    cited = set(re.findall(r"METHODS (\d+(?:\.\d+b?)?)", sources))
    assert len(cited) > 10
    assert cited - set(sections) == set()


def test_make_commands_of_the_readme_exist():
    targets = (ROOT / "Makefile").read_text()
    for name in re.findall(r"`make (\w+)`", (ROOT / "README.md").read_text()):
        assert f"\n{name}:" in targets
