"""The JavaScript library's list of mechanisms: `python -m schemas.javascript` writes it."""

from pathlib import Path

import ldp_client
from ldp_client.documents.catalogue import MECHANISMS

FOLDER = Path(ldp_client.__file__).parents[1] / "js"
FILE = "mechanisms/loaders.js"
HEAD = "/** How to load each mechanism. `make schemas` writes this file from ldp_client/documents. */"


def loaders() -> str:
    """Return the text of mechanisms/loaders.js: how to load each mechanism that has a sampler there."""
    having = [name for name in MECHANISMS if (FOLDER / "mechanisms" / f"{name}.js").exists()]
    return (
        f"{HEAD}\n\nexport const LOADERS = {{\n"
        + "".join([f'  {name}: () => import("./{name}.js"),\n' for name in having])
        + "};\n"
    )


def write() -> None:
    """Write the file into the library."""
    (FOLDER / FILE).write_text(loaders(), encoding="utf-8")


if __name__ == "__main__":
    write()
