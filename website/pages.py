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

import click

ROOT = Path(__file__).parents[1]
JAVASCRIPT = ROOT / "js"
sys.path.insert(0, str(ROOT))

from ldpkit.cli import cli  # noqa: E402
from ldpkit.cli.commands import WIDTH  # noqa: E402
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
    # 1. The tests marked `attack` with what they try, by the promise's number.
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
    # 2. The promises. Two files may test one.
    for path in sorted((ROOT / "tests" / "promises").glob("test_*.py")):
        if tried := attacks.pop(int(path.stem.split("_")[1]), []):
            promise = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
            lines += ["", f"## {promise}", "", *tried]
    return "\n".join([*lines, ""])


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

    document, nodes = openapi_document(OPERATIONS), openapi_document(NODE_OPERATIONS)["paths"]
    own = {path: nodes[path] for path in sorted(nodes.keys() - document["paths"].keys())}
    lines = [
        "# HTTP",
        "",
        "A collector serves its OpenAPI document at `/openapi.json`; this is what it says. Problems are "
        "documents of RFC 9457, with a `type` of [these](errors.md#problems).",
        "",
        *route_lines(document["paths"]),
        *("## Of nodes", "", "A node of secure sums has besides:", ""),
        *route_lines(own),
        *("## Documents", ""),
    ]
    for name, schema in document["components"]["schemas"].items():
        text = json.dumps(schema, indent=1, ensure_ascii=False)
        lines += [f"### {name}", "", f"```json\n{text}\n```", ""]
    return "\n".join(lines)


def route_lines(paths: dict[str, Any]) -> Iterator[str]:
    """Yield what each route takes and answers."""
    routes = [
        (f"### `{method.upper()} {path}`", route)
        for path, operations in paths.items()
        for method, route in operations.items()
    ]
    for title, route in routes:
        yield from (title, "", cell(route.get("summary", "")), "", route.get("description", ""), "")
        if "parameters" in route:
            yield from ("| parameter | in | required | |", "|---|---|---|---|")
            for parameter in route["parameters"]:
                required = "yes" if parameter.get("required") else "no"
                about = cell(parameter.get("description", ""))
                yield f"| `{parameter['name']}` | {parameter['in']} | {required} | {about} |"
            yield ""
        body = route.get("requestBody", {}).get("content", {})
        if body:
            kinds = [
                f"`{kind}`{', ' if names else ''}{' or '.join(names)}"
                for kind, names in ((kind, documents_in(content)) for kind, content in body.items())
            ]
            yield from (f"It takes {', or '.join(kinds)}.", "")
        yield from ("| answer | |", "|---|---|")
        for code, answer in route["responses"].items():
            if code != "default":
                # Every refusal is a problem.
                contents = [one for kind, one in answer.get("content", {}).items() if "problem" not in kind]
                texts = [cell(answer.get("description", "")), *documents_in(contents)]
                yield f"| {code} | {', '.join(texts)} |"
        yield ""


def documents_in(content: Any) -> list[str]:
    """Return links to the documents that a body or an answer carries."""
    names = dict.fromkeys(REFERENCE.findall(json.dumps(content)))
    return [f"[{name}](#{name.lower()})" for name in names]


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
    lines += ["| code | |", "|---|---|"]
    types = (JAVASCRIPT / "index.d.ts").read_text("utf-8")
    stated = types.partition("export type ErrorCode =")[2].partition('";\n')[0] + '"'
    for about, code in re.findall(r'/\*\* (.+) \*/\s+\| "(\w+)"', stated):
        lines.append(f"| `{code}` | {cell(about)} |")
    lines += ["", "## Problems", "", "| type | status | | what to do |", "|---|---|---|---|"]
    for kind in vars(problems).values():
        if isinstance(kind, problems.Kind):
            said = f"{cell(kind.title)} | {cell(kind.advice)}"
            lines.append(f"| `{kind.type}` | {kind.status} | {said} |")
    return "\n".join(lines) + "\n"


def command_line_page() -> str:
    """Each command's help, whole."""
    lines = [
        "# All commands",
        "",
        "What `ldpkit COMMAND --help` prints. What commands have in common, exit codes among it, is on "
        "[a page of its own](../commands.md).",
    ]
    for name, command in commands():
        ctx = click.Context(command, info_name=name, terminal_width=WIDTH)
        lines += ["", f"## `{name}`", "", "```text", command.get_help(ctx).rstrip(), "```"]
    return "\n".join([*lines, ""])


def commands(command: click.Command = cli, name: str = "ldpkit") -> Iterator[tuple[str, click.Command]]:
    """Yield each command that does something by itself, after its whole name."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    ctx = click.Context(command)
    for word in sorted(command.list_commands(ctx)):
        inner = command.get_command(ctx, word)
        assert inner is not None
        yield from commands(inner, f"{name} {word}")


def write() -> None:
    """Give MkDocs the pages, and the files that pages link to."""
    import mkdocs_gen_files

    for place, text in pages():
        with mkdocs_gen_files.open(place, "w") as file:
            file.write(text)
    folders: dict[str, list[str]] = {}
    for path in sorted(linked_files()):
        with mkdocs_gen_files.open(f"{FILES}/{path}", "wb") as file:
            file.write((ROOT / path).read_bytes())
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    for folder, names in folders.items():
        if folder:
            with mkdocs_gen_files.open(f"{FILES}/{folder}/index.md", "w") as file:
                file.write("\n".join([f"# {folder}", "", *(f"- [{name}]({name})" for name in names), ""]))


# How the plugin gen-files runs it.
if __name__ == "<run_path>":
    write()
