"""What a MicroPython board installs with mip: `python -m schemas.board` writes ldp_client/package.json."""

import json
from pathlib import Path

import ldp_client

HOME = Path(ldp_client.__file__).parent
# The device core: docs/embedding.md says what storage and transport a board adds.
FOLDERS = ("documents", "core", "mechanisms", "words")
FILES = ("__init__.py", "answering.py", "words/en.core.json")
NAME = "package.json"


def package() -> "dict[str, object]":
    """The package as mip reads it: each file of a board, and where it is beside the package's own file."""
    found = [path.relative_to(HOME).as_posix() for folder in FOLDERS for path in (HOME / folder).glob("*.py")]
    version = json.loads((HOME / "js" / NAME).read_text("utf-8"))["version"]
    urls = [[f"ldp_client/{name}", name] for name in sorted([*FILES, *found])]
    return {"urls": urls, "deps": [], "version": version}


def text() -> str:
    """The file's text."""
    said = package()
    urls = said.pop("urls")
    assert isinstance(urls, list)
    lines = ",\n".join(f"  {json.dumps(pair)}" for pair in urls)
    return f'{{\n "urls": [\n{lines}\n ],\n {json.dumps(said)[1:-1]}\n}}\n'


def write() -> None:
    """Write the file beside the package's own."""
    (HOME / NAME).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write()
