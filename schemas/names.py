"""The title by which people know a question of a study document."""

from typing import Any


def title_above(document: dict[str, Any], question: str) -> str:
    """Return the title shown for a question without text: its section's title, else the study's."""
    titles = [part["title"] for part in document.get("sections", []) if question in part["questions"]]
    return str([*titles, document["title"]][0])
