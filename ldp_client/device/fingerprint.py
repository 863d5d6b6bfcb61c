"""Digests of what a question asks a person, one for each language of its study, for the ledger.

A question stays the same if a newer version only adds languages or only drops some. A language in which it
asks something else makes it a new question: readers of that language were never asked it.
"""

import hashlib

from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.sections import title_above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Optional


def told_in(documents: "list[dict[str, Any]]", question: str) -> "dict[str, str]":
    """Return {digest of what a person is asked: digest without words and model}, one entry per language.

    The first digest leaves out noise, model and order. It includes the title above if the question has no
    text. The second digest includes the noise. documents: as `in_each_plain` returns them.
    """
    asked = [item for document in documents for item in document["questions"] if item["id"] == question]
    worded = [{"text": title_above(one, question), **item} for one, item in zip(documents, asked)]
    words = _digests(worded, "mechanism", "model", "ordered")
    return dict(zip(words, _digests(asked, "text", "model", "ordered")))


def is_same(words: "Iterable[str]", others: "Iterable[str]") -> bool:
    """Return True if both sets of words belong to the same question."""
    one, other = set(words), set(others)
    return one <= other or other <= one


def place_of(kept: "list[set[str]]", words: "set[str]") -> "Optional[int]":
    """Return the index of the kept words that `words` replace, `len(kept)` to add them, None to keep all.

    kept: the words of each permanent answer of a question, in the order of their keys.
    """
    fewer = [place for place, one in enumerate(kept) if one < words]
    if fewer:
        return fewer[0]
    return None if any([is_same(one, words) for one in kept]) else len(kept)


def key_of(words: "Iterable[str]", is_first: bool) -> str:
    """Return the part of a permanent answer's key after its question's id: "" for the words asked first."""
    return "" if is_first else "+".join(sorted(words))


def _digests(parts: "list[dict[str, Any]]", *left_out: str) -> "list[str]":
    """Return each part's digest without these keys. Equal parts in a row (shared labels) are hashed once."""
    found: "list[str]" = []
    before: "dict[str, Any]" = {}
    for part in parts:
        kept = {key: part[key] for key in part if key not in left_out}
        if not found or kept != before:
            digest = hashlib.sha256(canonical_json(kept).encode("utf-8")).hexdigest()
        found.append(digest)
        before = kept
    return found
