"""All messages of errors and problems with their codes, as the source has them: `tests/golden/messages.txt`.

`python -m tests.kit.messages` rewrites the file. A change of messages changes this file and no test.
"""

import ast
import sys
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
def calls():
    """Each call that makes an error: its file, the call and the class's name."""
    found = []
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0))
        own = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
        texts = [node for node in nodes if isinstance(node, ast.Assign)]
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            is_said = isinstance(call.func, ast.Attribute) and call.func.attr == "say"
            name = call.func.value if is_said else call.func
            if not isinstance(name, ast.Name) or name.id not in {"refuse_study", *CLASSES} - own:
                continue
            call.args = [_stated(argument, texts) for argument in call.args]
            if name.id == "refuse_study":
                _is_broken, place, problem, code = call.args
                error = ast.Call(name, [place, problem], [ast.keyword("code", code)])
                found.append((str(path.relative_to(ROOT)), ast.copy_location(error, call), "StudyError"))
            else:
                found.append((str(path.relative_to(ROOT)), call, name.id))
    return tuple(found)


def _stated(argument, assigned):
    """The text that was assigned in a line above to the name that is an argument, else the argument."""
    for node in assigned if isinstance(argument, ast.Name) else ():
        is_above = argument.lineno - 3 <= node.lineno < argument.lineno
        is_text = isinstance(node.value, ast.JoinedStr | ast.Constant)
        if is_above and is_text and ast.unparse(node.targets[0]) == argument.id:
            return node.value
    return argument


def code_of(call):
    """The code that a call states; None where it states none, "" where a variable has it."""
    if isinstance(call.func, ast.Attribute):
        key = call.args[0]
        return str(key.value) if isinstance(key, ast.Constant) else ""
    for keyword in call.keywords:
        if keyword.arg == "code":
            return str(keyword.value.value) if isinstance(keyword.value, ast.Constant) else ""
    return None


def words_of(call):
    """A call's message with {names} in place of facts."""
    if isinstance(call.func, ast.Attribute):
        return " | ".join(_sentences(code_of(call) or ""))
    return ": ".join(_plain(argument) for argument in call.args)


def _sentences(key):
    if not key:
        return ["…"]
    found = ENGLISH.sentences(key).get(key, "")
    return [found] if isinstance(found, str) else list(found.values())


def _plain(node):
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_plain(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "{" + ast.unparse(node.value) + "}"
    return "{" + ast.unparse(node) + "}"


def lines():
    """A line for each message: class, code, words; then a line for each kind of problem."""
    found = {f"{name} {code_of(call) or '-'}: {words_of(call)}" for _file, call, name in calls()}
    found |= {f"Problem {kind.name} {kind.status}: {kind.title}. {kind.advice}" for kind in KINDS}
    return sorted(line.replace("\n", " ") for line in found)


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    sys.stdout.write(f"{GOLDEN.relative_to(ROOT)} is written\n")
