"""The documentation's site: strict, whole, and loading nothing from elsewhere."""

import importlib
import json
import os
import re
import sys
from dataclasses import fields

import pytest

from collector import problems
from collector.api.health import OPERATIONS
from collector.api.openapi import openapi_document
from collector.settings import Settings
from tests.kit.programs import output_of
from website import links, pages

QUIET = {"DISABLE_MKDOCS_2_WARNING": "true", "NO_MKDOCS_2_WARNING": "1"}
# What a page loads or frames.
LOADED = re.compile(
    r'<(?:script|img|iframe|source|link rel="(?:stylesheet|icon|preload)")[^>]*?(?:src|href)="([^"]+)"'
)


@pytest.fixture(scope="module")
def made():
    return dict(pages.pages())


def test_reference_pages_cover_all_public_code(made):
    for field in fields(Settings):
        default = "none" if field.default in (None, ()) else field.default
        section = made["reference/settings.md"].split(f"## `{field.name}`\n")[1].split("\n## ")[0]
        assert f"`LDPKIT_{field.name.upper()}`, default `{default}`\n\n{field.metadata['help']}\n" in section
    for kind in vars(problems).values():
        if isinstance(kind, problems.Kind):
            assert f"| `{kind.type}` | {kind.status} |" in made["reference/errors.md"]
    for path, operations in openapi_document(OPERATIONS)["paths"].items():
        for method in operations:
            assert f"### `{method.upper()} {path}`" in made["reference/http.md"]
    assert "It takes `application/json`, [Report](#report)" in made["reference/http.md"]
    assert "| 201 | Created, [Published](#published) |" in made["reference/http.md"]
    assert "### Report\n\n```json" in made["reference/http.md"]
    assert "| `budget` | The answers would cost more" in made["reference/errors.md"]
    assert "## `ldpkit/ledgers/node`" in made["reference/javascript.md"]
    for package in pages.PACKAGES:
        for name in importlib.import_module(package).__all__:
            assert re.search(rf"^(:::.*\.|.*`{package}\.){name}\b", made["reference/python.md"], re.MULTILINE)


def test_reference_lists_every_command_and_option(made):
    parts = re.split(r"^## `([^`]+)`$", made["reference/command-line.md"], flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2]))
    found = dict(pages.commands())
    assert sections.keys() == found.keys()
    assert {"ldpkit fit", "ldpkit serve", "ldpkit answer", "ldpkit keys"} <= found.keys()
    for name, command in found.items():
        shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        for option in [word for parameter in shown for word in parameter.opts if word.startswith("-")]:
            assert option in sections[name], (name, option)


def test_links_out_of_the_docs_point_to_site_pages():
    text = "[a](../SECURITY.md) [b](../examples) [c](study.md#scales) [d](https://a.example) [e](#here)"
    text += " [f](../collector/settings.py)"
    led = (
        "[a](security.md) [b](files/examples/index.md) [c](study.md#scales) [d](https://a.example) [e](#here)"
        " [f](reference/settings.md)"
    )
    assert links.relinked(text, "privacy.md", "docs") == led
    assert links.relinked("[a](docs/study.md)", "reference/architecture.md", "") == "[a](../study.md)"


@pytest.mark.processes
@pytest.mark.needs("mkdocs")
def test_the_site_is_built_strictly_and_loads_nothing_from_elsewhere(tmp_path, pytestconfig):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    command += ["--config-file", "website/mkdocs.yml"]
    environment = {**os.environ, **QUIET}
    output_of(*command, cwd=pytestconfig.rootpath, env=environment)
    built = list((tmp_path / "site").rglob("*.html"))
    assert len(built) >= 30
    for page in built:
        for address in LOADED.findall(page.read_text("utf-8")):
            assert not re.match(r"(?:\w+:)?//", address), (page.name, address)
    found = json.loads((tmp_path / "site" / "search" / "search_index.json").read_text("utf-8"))["docs"]
    places = {one["location"].partition("#")[0] for one in found if "randomized response" in one["text"]}
    assert "glossary.html" in places
    reference = (tmp_path / "site" / "reference" / "python.html").read_text("utf-8")
    assert 'id="ldp_client.device.device.Device.answer"' in reference
