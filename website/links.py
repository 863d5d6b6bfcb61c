"""Links of pages that lead out of docs/: to the site's own copies of those files, or to their pages."""

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
# Files of the repository that are pages of the site.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "reference/changes.md",
    "ARCHITECTURE.md": "reference/architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples.md",
}
# Files of code whose content is a page of the site.
REFERENCE = {
    "collector/settings.py": "reference/settings.md",
    "collector/problems.py": "reference/errors.md",
    "ldp_client/documents/errors.py": "reference/errors.md",
    "ldp_client/device/device.py": "reference/python.md",
    "js/index.d.ts": "reference/javascript.md",
}
# Where the site keeps what is no page.
FILES = "files"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead each link to where the site has what it names. Called by MkDocs for each page."""
    place = page.file.src_uri
    return relinked(markdown, place, posixpath.dirname(f"docs/{place}"))


def relinked(markdown: str, page: str, folder: str) -> str:
    """The text of a page of the site, whose links are written as from a folder of the repository."""
    here = posixpath.dirname(page) or "."

    def lead(found: re.Match[str]) -> str:
        target = target_of(posixpath.normpath(posixpath.join(folder, found[1])))
        return found[0] if target is None else posixpath.relpath(target, here) + (found[2] or "")

    return LINK.sub(lead, markdown)


def target_of(path: str) -> str | None:
    """The site's place of a file of the repository; None where pages name none of its files."""
    if page := PAGES.get(path) or REFERENCE.get(path):
        return page
    if path.startswith("docs/") and (ROOT / path).is_file():
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        return f"{FILES}/{path}/index.md"
    return f"{FILES}/{path}" if (ROOT / path).is_file() else None


def linked_files() -> set[str]:
    """The files of the repository, none of them a page or in docs/, that pages link to."""
    found = set()
    for source in [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in PAGES)]:
        folder = source.parent.relative_to(ROOT).as_posix()
        for link in LINK.finditer(source.read_text("utf-8")):
            path = posixpath.normpath(posixpath.join(folder, link[1]))
            if (target_of(path) or "").startswith(f"{FILES}/"):
                # A file, or a folder's own files, as far as they are text.
                inside = [ROOT / path] if (ROOT / path).is_file() else [*(ROOT / path).iterdir()]
                for file in inside:
                    if file.is_file() and file.suffix != ".pyc" and not file.name.startswith("."):
                        found.add(file.relative_to(ROOT).as_posix())
    return found
