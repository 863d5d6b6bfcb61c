"""What a question asks a person, in digests that a ledger can keep: one for each language of its study.

A question stays the same where a newer version has all that it was asked in so far, however many languages
that adds, or nothing else than that. A language in which it asks another thing makes it a new one: who reads
that language was never asked it.
"""

import hashlib

from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.sections import title_above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Optional


def told_in(documents: "list[dict[str, Any]]", question: str) -> "dict[str, str]":
    """For each language the digest of what a person is asked, and that of all but the words and the model.

    The former is of all but noise, model and order, of the title above where there are no words; the
    latter has the noise. documents: as of `in_each_plain`.
    """
    asked = [item for document in documents for item in document["questions"] if item["id"] == question]
    worded = [{"text": title_above(one, question), **item} for one, item in zip(documents, asked)]
    words = _digests(worded, "mechanism", "model", "ordered")
    return dict(zip(words, _digests(asked, "text", "model", "ordered")))


def is_same(words: "Iterable[str]", others: "Iterable[str]") -> bool:
    """Whether a question in these words is the one in those."""
    one, other = set(words), set(others)
    return one <= other or other <= one


def place_of(kept: "list[set[str]]", words: "set[str]") -> "Optional[int]":
    """In the place of which of the kept words these are kept: `len(kept)` beside them, None not at all.

    kept: those of each permanent answer of a question, in the order of their keys.
    """
    fewer = [place for place, one in enumerate(kept) if one < words]
    if fewer:
        return fewer[0]
    return None if any([is_same(one, words) for one in kept]) else len(kept)


def key_of(words: "Iterable[str]", is_first: bool) -> str:
    """What a permanent answer is kept under, beside its question: "" for what was asked first."""
    return "" if is_first else "+".join(sorted(words))


def _digests(parts: "list[dict[str, Any]]", *left_out: str) -> "list[str]":
    """Of each part without these keys; once of those in a row that are alike, as where labels are shared."""
    found: "list[str]" = []
    before: "dict[str, Any]" = {}
    for part in parts:
        kept = {key: part[key] for key in part if key not in left_out}
        if not found or kept != before:
            digest = hashlib.sha256(canonical_json(kept).encode("utf-8")).hexdigest()
        found.append(digest)
        before = kept
    return found
