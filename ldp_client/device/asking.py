"""What a question asks a person, in digests that a ledger can keep: one for each language of its study.

A question stays the same where a newer version has all that it was asked in so far, however many languages
that adds, or nothing else than that. A language in which it asks another thing makes it a new one: who reads
that language was never asked it.
"""

import hashlib
from functools import lru_cache

from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import StudyError
from ldp_client.documents.sections import title_above
from ldp_client.documents.spoken import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ldp_client.documents.study import Study


def told_of(study: "Study", question: str) -> "dict[str, str]":
    """For each language the digest of what a person is asked, and that of all but the words and the model.

    The former is of all but noise, model and order, of the title above where there are no words; the
    latter has the noise, and is what older ledgers kept.
    """
    told = {}
    for document in _in_each_language(study):
        (asked,) = [item for item in document["questions"] if item["id"] == question]
        told[_digest({"text": title_above(document, question), **asked}, "mechanism", "model", "ordered")] = (
            _digest(asked, "text", "model", "ordered")
        )
    return told


def words_of(study: "Study", question: str) -> "set[str]":
    """What a person is asked, in each language: see `told_of`."""
    return set(told_of(study, question))


def is_same(words: "Iterable[str]", others: "Iterable[str]") -> bool:
    """Whether a question in these words is the one in those."""
    one, other = set(words), set(others)
    return one <= other or other <= one


# One study's questions are asked after in turn, within one transaction.
@lru_cache(maxsize=1)
def _in_each_language(study: "Study") -> "list[dict[str, Any]]":
    document = study.document
    return [plain(document, language, StudyError) for language in study.languages] or [document]


def _digest(asked: "dict[str, Any]", *left_out: str) -> str:
    kept = {key: asked[key] for key in asked if key not in left_out}
    return hashlib.sha256(canonical_json(kept).encode("utf-8")).hexdigest()
