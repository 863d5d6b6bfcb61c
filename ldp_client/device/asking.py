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
    from typing import Any, Optional

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


class Anew:
    """After which version a question is drawn anew, unless one of some others was answered too."""

    def __init__(self, version: int, unless: "list[int]") -> None:
        self.version = version
        self.unless = unless


def asked_anew(study: "Study", earlier: "Iterable[Study]") -> "dict[str, Anew]":
    """The memoized questions that a device draws anew which answered some of the earlier versions of a study.

    Each with the last version after which everybody draws, or else the last one after which somebody does:
    who answered none of those that are beside it. earlier: in their order. By the words alone: who answered
    with other noise draws nothing, and is refused.
    """
    now = _memoized(study)
    asked: "dict[str, dict[int, set[str]]]" = {name: {} for name in now}
    for one in earlier if now else ():
        for name, words in _memoized(one).items():
            if name in now:
                asked[name][one.version] = words
    found = {name: _drawn_after(now[name], asked[name]) for name in now}
    return {name: versions[-1] for name, versions in found.items() if versions}


def _drawn_after(now: "set[str]", asked: "dict[int, set[str]]") -> "list[Anew]":
    """Each version after which one question is drawn anew, with those that keep from it who answered one of
    them too; last what is to be told. asked: the words of each version.
    """
    found = []
    for version in asked:
        if _draws(now, [asked[version]]):
            both = {
                other: [words for one, words in asked.items() if one in (version, other)] for other in asked
            }
            found.append(Anew(version, [other for other in both if not _draws(now, both[other])]))
    return sorted(found, key=lambda one: not one.unless)


def _draws(now: "set[str]", asked: "list[set[str]]") -> bool:
    """Whether a device draws anew that was asked in these words, one after the other."""
    kept: "dict[str, set[str]]" = {}
    for words in asked:
        keys = sorted(kept)
        place = place_of([kept[key] for key in keys], words)
        if place is not None:
            kept[[*keys, key_of(words, not keys)][place]] = words
    return not any([is_same(words, now) for words in kept.values()])


def _memoized(study: "Study") -> "dict[str, set[str]]":
    """The words of a study's memoized questions, in all languages."""
    mechanisms = mechanisms_of(study)
    names = [name for name in mechanisms if hasattr(mechanisms[name], "permanent")]
    documents = in_each_plain(study) if names else []
    return {name: set(told_in(documents, name)) for name in names}


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
