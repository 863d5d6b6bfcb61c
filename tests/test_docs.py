"""The documentation is true: its Python runs, its commands and links exist, and so do the files it names."""

import ast
import json
import re
import shlex
from pathlib import Path

import pytest

from ldp_client.documents.catalogue import MECHANISMS
from ldp_client.documents.question import QUESTIONS
from ldp_client.explain import factors
from ldp_client.mechanisms import mechanism_for
from schemas import Study
from schemas.models import MODELS
from schemas.study import STUDY
from tests import studies
from tests.kit.commands import parsed

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("**/*.md")])
PACKAGES = ("schemas", "ldp_client", "summaries", "collector", "inference")


# At most so many KB a page. A budget only falls: move text to the reference instead of raising it.
BUDGETS = {
    "README.md": 6.6,
    "CHANGELOG.md": 1.1,
    "ARCHITECTURE.md": 6.6,
    "CONTRIBUTING.md": 4.3,
    "SECURITY.md": 1.1,
    "docs/adding-a-mechanism.md": 7.4,
    "docs/adding-a-model.md": 3.4,
    "docs/analysis.md": 7,
    "docs/commands.md": 3.1,
    "docs/comparison.md": 4.9,
    "docs/data-holders.md": 6.9,
    "docs/design-decisions.md": 2.9,
    "docs/embed.md": 8.8,
    "docs/glossary.md": 2.3,
    "docs/machines.md": 4,
    "docs/methods.md": 12.7,
    "docs/models.md": 9,
    "docs/anonymous-transport.md": 4.1,
    "docs/native.md": 4.5,
    "docs/operate.md": 10.1,
    "docs/payloads.md": 8,
    "docs/privacy.md": 7.2,
    "docs/public-fields.md": 3.7,
    "docs/rappor.md": 1.1,
    "docs/results.md": 5.6,
    "docs/scaling.md": 3.5,
    "docs/secure-sum.md": 5.3,
    "docs/shuffling.md": 3.3,
    "docs/study.md": 10,
    "docs/surveys.md": 10.4,
    "docs/tickets.md": 5.8,
    "docs/troubleshooting.md": 4.5,
    "docs/tutorials/app.md": 5.2,
    "docs/tutorials/epidemiologist.md": 5.3,
    "docs/tutorials/operator.md": 5.4,
    "docs/two-thousand-people.md": 2.8,
    "docs/which-epsilon.md": 1.9,
    "docs/year.md": 1.9,
}


def blocks(page, language):
    """List a page's fenced texts in one language; "" for texts without a language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), flags=re.M | re.S)
    return [text for name, text in fenced if name == language]


def test_epsilon_table_matches_the_devices_sentences():
    rows = re.findall(r"^\| ([0-9.]+) \| (.+) \| (.+) \|$", (DOCS / "which-epsilon.md").read_text(), re.M)
    assert len(rows) == 9
    for epsilon, *said in rows:
        assert tuple(said) == factors(float(epsilon))


def test_every_page_stays_within_its_word_budget():
    sizes = {page.relative_to(ROOT).as_posix(): page.stat().st_size / 1000 for page in PAGES}
    assert set(sizes) == set(BUDGETS)
    assert {name: size for name, size in sizes.items() if size > BUDGETS[name]} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_local_links_resolve(page):
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text()):
        if "://" not in target:
            there = page.parent / target if target else page
            assert there.exists(), target
            if anchor:
                headings = "\n".join(re.findall(r"^#+ (.*)$", there.read_text(), flags=re.M)).lower()
                # An anchor has hyphens for spaces, and no other signs.
                assert anchor in re.sub(r"[^\w\n-]", "", headings.replace(" ", "-")).split("\n"), anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_pages_exist(page):
    text = "\n".join(blocks(page, ""))
    for command in re.findall(r"^(?:\w+=\S+ )*ldpkit ([a-z-]+[^#\n]*)", text, flags=re.M):
        assert parsed(shlex.split(command)) is not None


def test_files_named_in_the_architecture_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for name in re.findall(rf"`((?:{'|'.join(PACKAGES)}|tests)/[\w/.]+)`", text):
        assert (ROOT / name).exists(), name


def test_functions_on_an_answers_path_exist():
    """The stops are FILE:FUNCTION or FILE:CLASS.METHOD."""
    stops = re.findall(r"^\| \d+ \| `([^`]+):([^`]+)`", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.M)
    assert 10 <= len(stops) <= 15
    for name, path in stops:
        body = ast.parse((ROOT / name).read_text("utf-8")).body
        for part in path.split("."):
            (found,) = [node for node in body if getattr(node, "name", "") == part]
            body = found.body


def test_the_architecture_names_every_layer():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for package in PACKAGES:
        folders = [path.parent for path in (ROOT / package).glob("*/__init__.py")]
        assert [one.name for one in folders if not re.search(rf"`(?:\w+/)?{one.name}`", text)] == []


def test_studies_of_the_guides_are_valid():
    document, spoken, *_ = blocks(DOCS / "study.md", "json")
    assert Study.from_json(spoken).shown_in("de").questions[0].choices == ("Apfel", "Birne", "kiwi")
    assert [mechanism_for(question).name for question in Study.from_json(document).questions]
    signs, levels, question, *_ = blocks(DOCS / "models.md", "json")
    assert mechanism_for(Study(studies.document(json.loads(signs))).questions[0]).weights.count(3) == 2
    leveled = {**json.loads(signs), **json.loads(levels)}
    assert len(mechanism_for(Study(studies.document(leveled)).questions[0]).owners) == 1 + 4 + 3 + 1 + 1
    assert set(Study(studies.document(json.loads(question))).questions[0].model.prior) == {"mean", "sd"}
    (document,) = blocks(DOCS / "public-fields.md", "json")
    assert [field.id for field in Study.from_json(document).public] == ["region", "age", "stratum"]


def test_guides_name_every_study_member_and_model():
    study, models = ((DOCS / name).read_text() for name in ("study.md", "models.md"))
    for name in (*STUDY.required, *STUDY.optional, *QUESTIONS, *MECHANISMS):
        assert f"`{name}`" in study, name
    for model, entry in MODELS.items():
        for name in (model, *entry.shape.optional["prior"].optional):
            assert f"`{name}`" in models, name


def test_formulas_that_docstrings_cite_exist():
    sources = "".join(path.read_text() for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    sections = re.findall(r"(?:^## |\*\*)(\d[\w.]*?)\.? ", (DOCS / "methods.md").read_text(), flags=re.M)
    cited = set(re.findall(r"METHODS (\d+(?:\.\d+b?)?)", sources))
    assert len(cited) > 10
    assert cited - set(sections) == set()


def test_lines_below_verdicts_that_troubleshooting_quotes_exist():
    sources = "".join(path.read_text() for path in sorted((ROOT / "inference").rglob("*.py")))
    sources = re.sub(r'"\s*f?"', "", sources)
    table = (DOCS / "troubleshooting.md").read_text().partition("## Fits, by verdict")[2]
    quoted = re.findall(r'"([^"]+)"', "".join(re.findall(r"^\| (\".*?) \|", table, flags=re.M)))
    assert len(quoted) > 8
    assert [part for line in quoted for part in line.split(" … ") if part not in sources] == []


def test_make_commands_of_the_readme_exist():
    targets = (ROOT / "Makefile").read_text()
    for name in re.findall(r"`make (\w+)`", (ROOT / "README.md").read_text()):
        assert f"\n{name}:" in targets
