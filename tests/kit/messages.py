"""All messages of errors and problems with their codes, as the source has them: `tests/golden/messages.txt`.

`python -m tests.kit.messages` rewrites the file. A change of messages changes this file and no test.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from collector.problems import KINDS
from ldp_client.documents import errors
from ldp_client.words.text import ENGLISH

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/messages.txt"
PACKAGES = ("ldp_client", "schemas", "summaries", "collector", "inference", "ldpkit")
# Whose message is their own: the class has the code, or the kind of problem.
OF_CLASS = {"ProblemError", "MissingExtraError", "LdpkitError"}
CLASSES = {name for name, value in vars(errors).items() if isinstance(value, type)} - OF_CLASS


@cache
def calls() -> tuple[tuple[str, ast.Call, str], ...]:
    """Each call that makes an error: its file, the call and the class's name."""
    return tuple(_calls())


def _calls() -> Iterator[tuple[str, ast.Call, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
            texts = _texts(tree)
            for node in ast.walk(tree):
                if not isinstance(node, ast.Call):
                    continue
                function = node.func
                if isinstance(function, ast.Name) and function.id == "refuse_study":
                    node = _as_error(node, texts)
                    yield str(path.relative_to(ROOT)), node, "StudyError"
                    continue
                is_said = isinstance(function, ast.Attribute) and function.attr == "say"
                name = function.value if is_said else function  # type: ignore[attr-defined]
                if isinstance(name, ast.Name) and name.id in CLASSES - own:
                    node.args = [_stated(argument, texts) for argument in node.args]
                    yield str(path.relative_to(ROOT)), node, name.id


def _as_error(call: ast.Call, texts: list[ast.Assign]) -> ast.Call:
    """The error that a call of `refuse_study` raises."""
    _is_broken, path, problem, code = (_stated(argument, texts) for argument in call.args)
    error = ast.Call(call.func, [path, problem], [ast.keyword("code", code)])
    return ast.copy_location(error, call)


def _texts(tree: ast.Module) -> list[ast.Assign]:
    """The assignments of texts to a name, in the order of the file."""
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    texts = [node for node in assigned if isinstance(node.value, ast.JoinedStr | ast.Constant)]
    return sorted(texts, key=lambda node: node.lineno)


def _stated(argument: ast.expr, texts: list[ast.Assign]) -> ast.expr:
    """The text that was assigned in the line above to the name that is an argument, else the argument."""
    for node in texts:
        is_above = argument.lineno - 3 <= node.lineno < argument.lineno
        if isinstance(argument, ast.Name) and is_above and ast.unparse(node.targets[0]) == argument.id:
            return node.value
    return argument


def code_of(call: ast.Call) -> str | None:
    """The code that a call states; None where it states none, "" where a variable has it."""
    if isinstance(call.func, ast.Attribute):
        key = call.args[0]
        return str(key.value) if isinstance(key, ast.Constant) else ""
    for keyword in call.keywords:
        if keyword.arg == "code":
            return str(keyword.value.value) if isinstance(keyword.value, ast.Constant) else ""
    return None


def words_of(call: ast.Call) -> str:
    """A call's message with {names} in place of facts."""
    if isinstance(call.func, ast.Attribute):
        return " | ".join(_sentences(code_of(call) or ""))
    return ": ".join(_plain(argument) for argument in call.args)


def _sentences(key: str) -> list[str]:
    if not key:
        return ["…"]
    found = ENGLISH.sentences(key).get(key, "")
    return [found] if isinstance(found, str) else list(found.values())


def _plain(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_plain(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "{" + ast.unparse(node.value) + "}"
    return "{" + ast.unparse(node) + "}"


def lines() -> list[str]:
    """A line for each message: class, code, words; then a line for each kind of problem."""
    found = {f"{name} {code_of(call) or '-'}: {words_of(call)}" for _file, call, name in calls()}
    found |= {f"Problem {kind.name} {kind.status}: {kind.title}. {kind.advice}" for kind in KINDS}
    return sorted(line.replace("\n", " ") for line in found)


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    sys.stdout.write(f"{GOLDEN.relative_to(ROOT)} is written\n")
