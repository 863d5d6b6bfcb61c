"""The names and titles by which people know a question of a study document."""

from typing import Any


def title_above(document: dict[str, Any], question: str) -> str:
    """Return the title shown for a question without text: its section's title, else the study's."""
    own = [one["title"] for one in document.get("sections", []) if question in one["questions"]]
    title: str = (own or [document["title"]])[0]
    return title


def names_in(document: dict[str, Any], question: str) -> list[str]:
    """Return all names of a question: its id, text and list title, and a record's fields, as in files."""
    (asked,) = [one for one in document["questions"] if one["id"] == question]
    names = [question, asked.get("text") or title_above(document, question)]
    for section in document.get("sections", []):
        if section.get("any_of") and question in section["questions"]:
            names.append(section["title"])
    fields = list(asked.get("features", [])) + ([asked["response"]] if "response" in asked else [])
    for part in fields:
        names += [part["id"], part.get("text", ""), question + "." + part["id"]]
    return [name for name in names if name]
