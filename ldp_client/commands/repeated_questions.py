"""Forecast for a publisher which memoized questions of a new version devices draw, and pay for, again."""

from typing import NamedTuple

from ldp_client.device.fingerprint import is_same, key_of, place_of, told_in
from ldp_client.documents.spoken import in_each_plain
from ldp_client.mechanisms import mechanisms_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ldp_client.documents.study import Study


class Redraw(NamedTuple):
    """A version after which a device draws a question again, unless it answered a version in `unless` too."""

    version: int
    unless: "list[int]"


def asked_anew(study: "Study", earlier: "Iterable[Study]") -> "dict[str, Redraw]":
    """Return the memoized questions that devices draw again after earlier versions of a study.

    Each question has the last version after which every device draws again. If there is none, it has the last
    version after which a device draws again if it answered no version in `unless`. earlier: the versions in
    order. Only words are compared: a device that answered with other noise draws nothing, and is refused.
    """
    now = _memoized(study)
    asked: "dict[str, dict[int, set[str]]]" = {name: {} for name in now}
    for one in earlier if now else ():
        for name, words in _memoized(one).items():
            if name in now:
                asked[name][one.version] = words
    found = {name: _drawn_after(now[name], asked[name]) for name in now}
    return {name: versions[-1] for name, versions in found.items() if versions}


def _drawn_after(now: "set[str]", asked: "dict[int, set[str]]") -> "list[Redraw]":
    """Return each version after which a device draws one question again; the version to report comes last.

    `unless` holds versions that prevent it: any of them suffices, if the device answered it too. asked: the
    words of each version.
    """
    found = []
    for version in asked:
        if _draws(now, [asked[version]]):
            both = {
                other: [words for one, words in asked.items() if one in (version, other)] for other in asked
            }
            found.append(Redraw(version, [other for other in both if not _draws(now, both[other])]))
    return sorted(found, key=lambda one: not one.unless)


def _draws(now: "set[str]", asked: "list[set[str]]") -> bool:
    """Return True if a device draws again after it was asked in these words, in order."""
    kept: "dict[str, set[str]]" = {}
    for words in asked:
        keys = sorted(kept)
        place = place_of([kept[key] for key in keys], words)
        if place is not None:
            kept[[*keys, key_of(words, not keys)][place]] = words
    return not any([is_same(words, now) for words in kept.values()])


def _memoized(study: "Study") -> "dict[str, set[str]]":
    """Return the words of a study's memoized questions, in all languages."""
    mechanisms = mechanisms_of(study)
    names = [name for name in mechanisms if hasattr(mechanisms[name], "permanent")]
    documents = in_each_plain(study) if names else []
    return {name: set(told_in(documents, name)) for name in names}
