"""The page on which a participant answers a study in a browser, and the files that it loads."""

import hashlib
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import flask
from flask import Blueprint, Response, request
from markupsafe import Markup, escape

from collector import store
from collector.api.parameters import STUDY_ID
from collector.context import current_collector
from collector.pages.illustration import hundred_of
from collector.pages.words import LANGUAGES, Language, chosen, is_leftward, own_name, words_of
from collector.problems import ProblemError
from collector.reports.intake import EARLY
from collector.reports.rules import Rules
from collector.studies import LIFETIME, issuer_of
from ldp_client.device.arguments import LOOPBACK
from ldp_client.documents.errors import InputError
from ldp_client.documents.rational import Rational
from ldp_client.explain import in_words, odds_of, values_in_words
from schemas import Study
from schemas.disk import read_bytes

participant = Blueprint("participant", __name__)

ASSET_FOLDER = Path(__file__).parent / "assets"
SCRIPT = "text/javascript"
# Other sites load these two: the element that shows a study, and the library.
SHARED = ("element.js", "ldpkit.js")
# `make page` bundles the scripts.
ASSETS = {"participant.css": "text/css"} | dict.fromkeys(("page.js", "worker.js", *SHARED), SCRIPT)
ORIGINS = "ldpkit-origins"
# The operator's logo, if the collector has one.
LOGO = "ldpkit-logo"
IMAGES = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp"}
LOGO_BYTES = 1 << 18
FOR_EVER = "public, max-age=31536000, immutable"
# The lifetime budget of one browser for all studies of this collector, in nats.
BUDGET = "10"
# If a question has more choices than this, they are a menu instead of a list of buttons.
MOST_BUTTONS = 7
# Placeholder for the study's address in a page; no author of a study can guess it.
ADDRESS = secrets.token_hex(16)
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src {connected}; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors {frame_ancestors}; "
    "require-trusted-types-for 'script'; trusted-types ldpkit"
)
# The policy of worker.js, which sends the queue and loads nothing.
WORKER_POLICY = "default-src 'none'; connect-src {connected}"


class Asset(NamedTuple):
    """A file of the page, and a name for its content: browsers may cache it permanently under that name."""

    content: bytes
    version: str


@cache
def _asset(name: str) -> Asset:
    content = (ASSET_FOLDER / name).read_bytes()
    return Asset(content, hashlib.sha256(content).hexdigest()[:16])


class Logo(NamedTuple):
    """An image and its media type."""

    content: bytes
    media_type: str


def read_logo(path: str) -> Logo:
    """Read the operator's logo. Raises InputError."""
    media_type, content = IMAGES.get(Path(path).suffix.lower()), read_bytes(Path(path))
    if media_type is None or len(content) > LOGO_BYTES:
        raise InputError(
            f"setting logo: {path} must be SVG, PNG, JPEG or WebP, of at most {LOGO_BYTES >> 10} KiB",
            code="settings.wrong_logo",
        )
    return Logo(content, media_type)


@participant.get("/assets/logo")
def logo() -> Response:
    """Return the operator's logo. An image of SVG runs no script, also if it is opened alone."""
    image: Logo | None = flask.current_app.extensions.get(LOGO)
    if image is None:
        flask.abort(404)
    response = flask.make_response(image.content)
    response.mimetype = image.media_type
    response.headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    response.headers["Cache-Control"] = "public, max-age=3600"
    return response


@participant.get("/s/<study_id>")
def page(study_id: str) -> Response:
    """Show the study in plain words, with a form whose answers never leave the browser without noise."""
    collector = current_collector()
    published = None
    with suppress(ProblemError):
        published = collector.current.require(STUDY_ID.read(study_id))
    if published is None:
        language = _language(LANGUAGES)
        return _secured(flask.make_response(_worded("missing.html", language, LANGUAGES), 404), language)
    rules = collector.rules.find(study_id, published.version)
    state, today = published.state, collector.today()
    # A device answers only on the study's own days.
    is_over = state.closed or (state.closes is not None and today > state.closes)
    is_early = state.opens is not None and today + EARLY < state.opens
    season = "over" if is_over else "early" if is_early else "open"
    language = _language(_offered(rules.study), rules.study.languages)
    origins = tuple(sorted({*_all_origins(), issuer_of(rules.study)} - {""}))
    has_logo = LOGO in flask.current_app.extensions
    rendered = _rendered(rules, rules.needs_ticket(state), season, language, origins, has_logo)
    text = _addressed(rendered, study_id)
    response = _secured(flask.make_response(text), language, origins)
    response.headers["Cache-Control"] = "no-cache"
    response.set_etag(hashlib.sha256(text).hexdigest())
    response.make_conditional(request)
    return response


def _offered(study: Study) -> tuple[str, ...]:
    """Return the languages of the study's page, its own first; only English for holders and secure sums."""
    if study.respondent != "person" or study.protocol is not None:
        return LANGUAGES[:1]
    return tuple(dict.fromkeys([*study.languages, *LANGUAGES]))


def _language(offered: tuple[str, ...], spoken: tuple[str, ...] = ()) -> str:
    """Return the language that the visitor chose, else the best one that the visitor reads.

    spoken: the study's languages. If the visitor reads another of them than the first, the page uses it, even
    if the visitor reads a language of the page better. The questions are in the first language anyway.
    """
    asked = (request.args.get("lang") or "").lower()
    best = chosen(asked, request.accept_languages, offered, offered[0])
    if best.lower() == asked or _first(best) in map(_first, spoken):
        return best
    read = chosen(None, request.accept_languages, spoken, "".join(spoken[:1]))
    return read if read in offered and read not in spoken[:1] else best


def _first(tag: str) -> str:
    return tag.partition("-")[0]


def _addressed(text: bytes, study_id: str) -> bytes:
    address = escape(address_of("studies.fetch_study", study_id=study_id))
    return text.replace(ADDRESS.encode(), address.encode())


def draft_page(study: Study, asked: str) -> bytes:
    """Return the page of a draft, without scripts: it shows the study, and can store and send nothing.

    Args:
        study: the draft.
        asked: the language to show it in, if the page has it.

    Returns:
        HTML.
    """
    rules, offered = Rules(study), _offered(study)
    language = asked if asked in offered else offered[0]
    has_logo, invited = LOGO in flask.current_app.extensions, rules.public.is_ticketed
    # Past the cache, which is for what many visitors see.
    text = _rendered.__wrapped__(rules, invited, "open", language, (), has_logo, is_draft=True)
    return _addressed(text, study.id)


@lru_cache(maxsize=256)
def _rendered(
    rules: Rules,
    invited: bool,
    season: str,
    language: str,
    origins: tuple[str, ...],
    has_logo: bool,
    is_draft: bool = False,
) -> bytes:
    """Return the page's bytes, with ADDRESS for the study's address: the same for all visitors on a day.

    A value that the sender chooses, such as the Host header, must not affect how much is rendered or cached.
    """
    study, words = rules.study.shown_in(language), words_of(language)
    spoken = rules.study.language_for(language)
    channel = study.channel
    return _worded(
        "holder.html" if study.respondent == "holder" else "participant.html",
        language,
        _offered(rules.study),
        is_draft=is_draft,
        has_logo=has_logo,
        study=study,
        parts=_parts_of(study),
        document=rules.study.document,
        spoken=spoken,
        # If the study is not in the page's language, `lang` marks the language of its texts.
        in_its_language=Markup(' lang="{}"').format(spoken) if spoken not in ("", words.language) else "",
        mechanisms=rules.mechanisms,
        over=season == "over",
        early=season == "early",
        # The token issuer also takes a ticket.
        invited=invited or (channel is not None and channel.tickets is not None),
        channel=channel,
        repeated=sum(asked.repeats for asked in study.questions),
        odds=lambda privacy: odds_of(study, float(privacy.epsilon), float(privacy.delta), words),
        in_words=partial(in_words, words=words),
        hundred_of=partial(
            hundred_of, words=words, one_of=len(study.questions) if study.sample_one_question else 1
        ),
        words=words.script_messages(),
        sender=_address_of("worker.js", origins),
        budget=BUDGET,
        address=ADDRESS,
        most_buttons=MOST_BUTTONS,
        values_in_words=partial(values_in_words, words=words),
        # On a phone, some keyboards with only digits have no minus.
        keyboard=lambda low: "text" if low < 0 else "decimal",
    ).encode()


class Part(NamedTuple):
    """Questions that the page shows together: their places, under a title or without one.

    is_list: whether they are the boxes of a list.
    """

    title: str
    places: list[int]
    is_list: bool = False


def _parts_of(study: Study) -> list[Part]:
    """Return the study's sections, or all questions together if it has none."""
    ids = [question.id for question in study.questions]
    sections = [
        Part(section.title, [ids.index(name) for name in section.questions], section.any_of)
        for section in study.sections
    ]
    return sections or [Part("", list(range(len(ids))))]


def _worded(template: str, language: str, offered: tuple[str, ...], **values: object) -> str:
    """Render a page in a language, with a menu of the offered languages."""
    words = words_of(language)
    return flask.render_template(
        template,
        asset=_address_of,
        _=lambda english, **facts: _filled(words, words.gettext(english), facts),
        ngettext=lambda one, other, count, **facts: _filled(
            words, words.ngettext(one, other, count), {**facts, "count": count}
        ),
        number=words.number,
        day=words.day,
        language=words.language,
        direction="rtl" if is_leftward(words.language) else "ltr",
        languages={tag: own_name(tag) for tag in offered},
        chosen=language,
        **values,
    )


def _filled(words: Language, sentence: str, facts: Mapping[str, object]) -> Markup:
    """Return a translated sentence as HTML: its text is escaped, and so are facts that are not markup."""
    shown = {
        name: words.number(str(fact)) if isinstance(fact, (int, Rational)) else fact
        for name, fact in facts.items()
    }
    return escape(sentence).format(**shown)


@participant.get("/assets/<name>")
def asset(name: str) -> Response:
    """Return a script or style of the page, or a script for other sites."""
    if name not in ASSETS:
        flask.abort(404)
    # The worker sends the reports of all studies, to each study's origin.
    origins = _all_origins() if name == "worker.js" else []
    response = flask.make_response(_asset(name).content)
    response.mimetype = ASSETS[name]
    response.headers["Content-Security-Policy"] = WORKER_POLICY.format(connected=_connected(origins))
    if name in SHARED:
        response.headers["Access-Control-Allow-Origin"] = "*"
        response.headers["Cache-Control"] = "no-cache"
        response.set_etag(_asset(name).version)
        response.make_conditional(request)
    if request.args.get("v") == _version_of(name, origins):
        response.headers["Cache-Control"] = FOR_EVER
    return response


def _connected(origins: Iterable[str]) -> str:
    return " ".join(["'self'", *origins])


def _all_origins() -> list[str]:
    """Return the origins to which reports of any version may be sent: any open page sends the whole queue.

    The list may be LIFETIME old, because anyone may request it, and often. Publishing bounds its length.
    """
    until, origins = flask.current_app.extensions.get(ORIGINS, (0.0, []))
    now = time.monotonic()
    if now >= until:
        with current_collector().database.read() as session:
            origins = sorted(set().union(*store.issuers(session).values()))
        flask.current_app.extensions[ORIGINS] = (now + LIFETIME, origins)
    return list(origins)


def _address_of(name: str, origins: Sequence[str] = ()) -> str:
    return flask.url_for("participant.asset", name=name, v=_version_of(name, origins))


def _version_of(name: str, origins: Sequence[str]) -> str:
    """Return a name for a file's content. A worker's name also covers its policy.

    A browser loads a worker with a new policy only from another address.
    """
    version = _asset(name).version
    return hashlib.sha256(" ".join([version, *origins]).encode()).hexdigest()[:16] if origins else version


def address_of(endpoint: str, **values: str) -> str:
    """Return a URL for other people: https, which ends at the proxy, except on this machine."""
    scheme = "http" if urlsplit(request.host_url).hostname in LOOPBACK else "https"
    return flask.url_for(endpoint, **values, _external=True, _scheme=scheme)


def _secured(response: Response, language: str, origins: Sequence[str] = ()) -> Response:
    response.headers["Content-Language"] = language
    # The language also depends on the browser's Accept-Language.
    response.vary.add("Accept-Language")
    frame_ancestors = " ".join(current_collector().settings.frame_ancestors) or "'none'"
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY.format(
        frame_ancestors=frame_ancestors, connected=_connected(origins)
    )
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
