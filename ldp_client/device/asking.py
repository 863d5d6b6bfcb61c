"""What a question asks a person, in digests that a ledger can keep: one for each language of its study.

A question stays the same where a newer version has all that it was asked in so far, however many languages
that adds, or nothing else than that. A language in which it asks another thing makes it a new one: who reads
that language was never asked it.
"""

import hashlib

from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.sections import title_above
from ldp_client.documents.spoken import in_each_plain
from ldp_client.mechanisms import mechanisms_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ldp_client.documents.study import Study


def told_in(documents: "list[dict[str, Any]]", question: str) -> "dict[str, str]":
    """For each language the digest of what a person is asked, and that of all but the words and the model.

    The former is of all but noise, model and order, of the title above where there are no words; the
    latter has the noise, and is what older ledgers kept. documents: as of `in_each_plain`.
    """
    asked = [item for document in documents for item in document["questions"] if item["id"] == question]
    worded = [{"text": title_above(one, question), **item} for one, item in zip(documents, asked)]
    words = _digests(worded, "mechanism", "model", "ordered")
    return dict(zip(words, _digests(asked, "text", "model", "ordered")))


def is_same(words: "Iterable[str]", others: "Iterable[str]") -> bool:
    """Whether a question in these words is the one in those."""
    one, other = set(words), set(others)
    return one <= other or other <= one


def asked_anew(study: "Study", earlier: "Iterable[Study]") -> "dict[str, int]":
    """The memoized questions that a device draws anew which answered all earlier versions of a study.

    Each with the last version that asked another thing. earlier: in their order.
    """
    now = _memoized(study)
    kept: "dict[str, list[set[str]]]" = {name: [] for name in now}
    others: "dict[str, int]" = {}
    for one in earlier if now else ():
        for name, words in _memoized(one).items():
            if name in now:
                _keep(kept[name], words)
                if not is_same(words, now[name]):
                    others[name] = one.version
    return {
        name: version
        for name, version in others.items()
        if not any([is_same(words, now[name]) for words in kept[name]])
    }


def _memoized(study: "Study") -> "dict[str, set[str]]":
    """The words of a study's memoized questions, in all languages."""
    mechanisms = mechanisms_of(study)
    names = [name for name in mechanisms if hasattr(mechanisms[name], "permanent")]
    documents = in_each_plain(study) if names else []
    return {name: set(told_in(documents, name)) for name in names}


def _keep(kept: "list[set[str]]", words: "set[str]") -> None:
    """What a device keeps of a question that is asked in these words, as `memory.remember` has it."""
    fewer = [place for place, one in enumerate(kept) if one < words]
    if fewer:
        kept[fewer[0]] = words
    elif not any([is_same(one, words) for one in kept]):
        kept.append(words)


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
