"""The package that a MicroPython board installs: `python -m schemas.board` writes ldp_client/package.json."""

import json
from pathlib import Path

import ldp_client

HOME = Path(ldp_client.__file__).parent
# The device core. A board adds storage and transport, as examples/esp32 does.
FOLDERS = ("documents", "core", "mechanisms", "words")
FILES = ("__init__.py", "answering.py", "words/en.core.json")
NAME = "package.json"


def package() -> "dict[str, object]":
    """Return the package as mip reads it: a board's files, with their paths relative to package.json."""
    found = [path.relative_to(HOME).as_posix() for folder in FOLDERS for path in (HOME / folder).glob("*.py")]
    version = json.loads((HOME.parent / "js" / NAME).read_text("utf-8"))["version"]
    urls = [[f"ldp_client/{name}", name] for name in sorted([*FILES, *found])]
    return {"urls": urls, "deps": [], "version": version}


def text() -> str:
    """Return the text of package.json."""
    said = package()
    urls = said.pop("urls")
    assert isinstance(urls, list)
    lines = ",\n".join(f"  {json.dumps(pair)}" for pair in urls)
    return f'{{\n "urls": [\n{lines}\n ],\n {json.dumps(said)[1:-1]}\n}}\n'


def write() -> None:
    """Write package.json into the folder of ldp_client."""
    (HOME / NAME).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write()
