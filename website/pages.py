"""The pages that the site's build makes from the code: what stands there cannot be out of date."""

import ast
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from posixpath import dirname
from typing import Any

ROOT = Path(__file__).parents[1]
JAVASCRIPT = ROOT / "js"
sys.path.insert(0, str(ROOT))

from website.command_line import command_line_page  # noqa: E402
from website.links import FILES, PAGES, linked_files, relinked  # noqa: E402

PACKAGES = {
    "ldpkit": "The one door for people; studies in Python.",
    "ldp_client": "The device.",
    "schemas": "Documents of authors and analysts, and errors.",
    "summaries": "From reports to what a posterior needs.",
    "collector": "The server.",
    "inference": "Posteriors.",
}
# The comment above a test that node runs, and its title.
NODE_ATTACK = re.compile(r'^ *// attack (\d+): (.*)\n *test\(["`]([^"`:]*)', re.M)
REFERENCE = re.compile(r'"#/components/schemas/(\w+)"')


def pages() -> Iterator[tuple[str, str]]:
    """Each made page's place and text."""
    for name, place in PAGES.items():
        yield place, relinked((ROOT / name).read_text("utf-8"), place, dirname(name))
    yield "reference/python.md", python_page()
    yield "reference/javascript.md", javascript_page()
    yield "reference/http.md", http_page()
    yield "reference/settings.md", settings_page()
    yield "reference/errors.md", errors_page()
    yield "reference/command-line.md", command_line_page()
    yield "reference/attacks.md", attacks_page()


def attacks_page() -> str:
    """Every attack that a test tries, under the promise that it tries to break."""
    lines = [
        "# Attacks",
        "",
        "Each is tried by a test of the repository, and each promise by a planted fault of `tests/promises`.",
    ]
    attacks = marked_attacks()
    for path in sorted((ROOT / "tests" / "promises").glob("test_*.py")):
        if tried := attacks.pop(int(path.stem.split("_")[1]), []):
            promise = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
            lines += ["", f"## {promise}", "", *tried]
    return "\n".join([*lines, ""])


def marked_attacks() -> dict[int, list[str]]:
    """List the tests marked `attack` with what they try, by the promise's number."""
    attacks: dict[int, list[str]] = {}
    for path in sorted((ROOT / "tests").glob("**/test_*.py")):
        statements = [] if "node_modules" in path.parts else ast.parse(path.read_text("utf-8")).body
        for test in (one for one in statements if isinstance(one, ast.FunctionDef)):
            marks = " ".join(map(ast.unparse, test.decorator_list))
            for promise in re.findall(r"pytest\.mark\.attack\((\d+)\)", marks):
                about = " ".join((ast.get_docstring(test) or "").split())
                name = test.name.removeprefix("test_").replace("_", " ")
                attacks.setdefault(int(promise), []).append(f"- **{name}**: {about}")
    for path in sorted((ROOT / "tests" / "js").glob("*.test.mjs")):
        for promise, about, name in NODE_ATTACK.findall(path.read_text("utf-8")):
            attacks.setdefault(int(promise), []).append(f"- **{name}**: {about}")
    return attacks


def python_page() -> str:
    """All public names; what a package takes from another stands once."""
    lines, seen = ["# Python", ""], set()
    for package, about in PACKAGES.items():
        module = importlib.import_module(package)
        lines += [f"## `{package}`", "", about, ""]
        for name in sorted(module.__all__):
            found = getattr(module, name)
            home = f"{getattr(found, '__module__', package)}.{getattr(found, '__qualname__', name)}"
            if inspect.ismodule(found) or not callable(found):
                lines += [f"`{package}.{name}`", ""]
            elif home in seen:
                lines += [f"[`{package}.{name}`][{home}]", ""]
            else:
                seen.add(home)
                lines += [f"::: {home}", ""]
    return "\n".join(lines)


def javascript_page() -> str:
    """The package's types, which say in comments what each does."""
    lines = [
        "# JavaScript",
        "",
        "The npm package `ldpkit`: an ES module without dependencies. "
        "[Embed](../embed.md#web) shows how to use it. These are its types.",
    ]
    package = json.loads((JAVASCRIPT / "package.json").read_text("utf-8"))
    for name, target in package["exports"].items():
        if isinstance(target, dict):
            types = (JAVASCRIPT / target["types"]).read_text("utf-8")
            lines += ["", f"## `{name.replace('.', 'ldpkit', 1)}`", "", f"```typescript\n{types}```"]
    return "\n".join([*lines, ""])


def http_page() -> str:
    """The routes of the collector's OpenAPI document, and its problems."""
    from collector.api.health import OPERATIONS
    from collector.api.openapi import openapi_document
    from collector.nodes.app import OPERATIONS as NODE_OPERATIONS

    document = openapi_document(OPERATIONS)
    lines = [
        "# HTTP",
        "",
        "A collector serves its OpenAPI document at `/openapi.json`; this is what it says. Problems are "
        "documents of RFC 9457, with a `type` of [these](errors.md#problems).",
        "",
    ]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            lines += operation_lines(f"{method.upper()} {path}", operation)
    own = set(openapi_document(NODE_OPERATIONS)["paths"]) - set(document["paths"])
    lines += ["## Of nodes", "", "A node of secure sums has besides:", ""]
    nodes = openapi_document(NODE_OPERATIONS)["paths"]
    for path in sorted(own):
        for method, operation in nodes[path].items():
            lines += operation_lines(f"{method.upper()} {path}", operation)
    return "\n".join([*lines, *schemas_of(document)])


def operation_lines(title: str, operation: dict[str, Any]) -> list[str]:
    """One route: what it takes and answers."""
    lines = [
        f"### `{title}`",
        "",
        cell(operation.get("summary", "")),
        "",
        operation.get("description", ""),
        "",
    ]
    rows = []
    for one in operation.get("parameters", ()):
        required = "yes" if one.get("required") else "no"
        rows.append(f"| `{one['name']}` | {one['in']} | {required} | {cell(one.get('description', ''))} |")
    if rows:
        lines += ["| parameter | in | required | |", "|---|---|---|---|", *rows, ""]
    body = operation.get("requestBody", {}).get("content", {})
    if body:
        lines += ["It takes " + ", or ".join(content_of(kind, one) for kind, one in body.items()) + ".", ""]
    answers = [
        f"| {code} | {cell(answer.get('description', ''))}{documents_of(answer)} |"
        for code, answer in operation["responses"].items()
        if code != "default"
    ]
    return [*lines, "| answer | |", "|---|---|", *answers, ""]


def content_of(kind: str, content: dict[str, Any]) -> str:
    """A media type, with the document that it carries."""
    names = REFERENCE.findall(json.dumps(content.get("schema", {})))
    links = " or ".join(f"[{name}](#{name.lower()})" for name in names)
    return f"`{kind}`, {links}" if links else f"`{kind}`"


def documents_of(answer: dict[str, Any]) -> str:
    """The documents that an answer has, but problems, which every refusal is."""
    contents = [one for kind, one in answer.get("content", {}).items() if "problem" not in kind]
    names = dict.fromkeys(REFERENCE.findall(json.dumps(contents)))
    return "".join(f", [{name}](#{name.lower()})" for name in names)


def schemas_of(document: dict[str, Any]) -> list[str]:
    """Every document that bodies and answers have, as JSON Schema."""
    lines = ["## Documents", ""]
    for name, schema in document["components"]["schemas"].items():
        text = json.dumps(schema, indent=1, ensure_ascii=False)
        lines += [f"### {name}", "", f"```json\n{text}\n```", ""]
    return lines


def cell(text: str) -> str:
    """A text as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def settings_page() -> str:
    """Each setting of a collector with its variable and default."""
    from collector.settings import PREFIX, Settings

    lines = [
        "# Settings of a collector",
        "",
        "In `ldpkit.toml`, or as variables, which count more ([operating](../operate.md) has the rest).",
        "",
    ]
    for field in fields(Settings):
        default = "none" if field.default in (None, ()) else field.default
        lines += [
            f"## `{field.name}`",
            "",
            f"`{PREFIX}{field.name.upper()}`, default `{default}`",
            "",
            field.metadata["help"],
            "",
        ]
    return "\n".join(lines)


def errors_page() -> str:
    """Exit codes, exceptions and problem documents."""
    from collector import problems
    from ldp_client.documents import errors

    codes = re.search(
        r"## Exit codes\n(.+?)(?=\n## |\Z)", (ROOT / "docs" / "commands.md").read_text("utf-8"), re.DOTALL
    )
    assert codes
    lines = ["# Errors", "", "## Exit codes", codes[1].strip(), "", "## Exceptions", ""]
    lines += ["| exception | exit code | |", "|---|---|---|"]
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.LdpkitError):
            lines.append(
                f"| `{name}` | {kind.exit_code} | {cell((kind.__doc__ or '').split(chr(10) * 2)[0])} |"
            )
    lines += ["", "## In JavaScript", "", "An `LdpkitError` has one of these as its `code`.", ""]
    lines += ["| code | |", "|---|---|", *javascript_codes()]
    lines += ["", "## Problems", "", "| type | status | | what to do |", "|---|---|---|---|"]
    for kind in vars(problems).values():
        if isinstance(kind, problems.Kind):
            said = f"{cell(kind.title)} | {cell(kind.advice)}"
            lines.append(f"| `{kind.type}` | {kind.status} | {said} |")
    return "\n".join(lines) + "\n"


def javascript_codes() -> Iterator[str]:
    """A row for each code of an error, as the types say what it means."""
    types = (JAVASCRIPT / "index.d.ts").read_text("utf-8")
    stated = types.partition("export type ErrorCode =")[2].partition('";\n')[0] + '"'
    for about, code in re.findall(r'/\*\* (.+) \*/\s+\| "(\w+)"', stated):
        yield f"| `{code}` | {cell(about)} |"


def write() -> None:
    """Give MkDocs the pages, and the files that pages link to."""
    import mkdocs_gen_files

    for place, text in pages():
        with mkdocs_gen_files.open(place, "w") as file:
            file.write(text)
    for path in sorted(linked_files()):
        with mkdocs_gen_files.open(f"{FILES}/{path}", "wb") as file:
            file.write((ROOT / path).read_bytes())
    for folder, names in folders().items():
        with mkdocs_gen_files.open(f"{FILES}/{folder}/index.md", "w") as file:
            file.write("\n".join([f"# {folder}", "", *(f"- [{name}]({name})" for name in names), ""]))


def folders() -> dict[str, list[str]]:
    """The linked files by their folder."""
    found: dict[str, list[str]] = {}
    for path in sorted(linked_files()):
        folder, _, name = path.rpartition("/")
        found.setdefault(folder, []).append(name)
    return {folder: names for folder, names in found.items() if folder}


# How the plugin gen-files runs it.
if __name__ == "<run_path>":
    write()
