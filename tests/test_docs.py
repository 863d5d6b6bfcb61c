"""The documentation is true: its Python runs, its commands and links exist, and so do the files it names."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ldp_client.cli import build_parser

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])


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
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_pages_exist(page):
    known = build_parser()._subparsers._group_actions[0].choices
    for command in re.findall(r"^(?:\w+=\S+ )*ldpkit ([a-z-]+)", "\n".join(blocks(page, "")), flags=re.M):
        assert command in known


def test_files_named_in_the_architecture_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for name in re.findall(r"`((?:schemas|ldp_client|collector|inference|tests)/[\w/.]+)`", text):
        assert (ROOT / name).exists(), name


def test_make_commands_of_the_readme_exist():
    targets = (ROOT / "Makefile").read_text()
    for name in re.findall(r"`make (\w+)`", (ROOT / "README.md").read_text()):
        assert f"\n{name}:" in targets
