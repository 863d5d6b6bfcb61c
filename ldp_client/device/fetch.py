"""Fetching a study document from a collector."""

import urllib.request

from ldp_client.device.exchange import MOST_CHARACTERS, exchange
from ldp_client.device.terms import read_new
from ldp_client.device.upload import identity_of
from ldp_client.documents.errors import InputError, TransferError
from ldp_client.documents.fields import IDENTIFIER_CHARACTERS, printable
from ldp_client.documents.signed import MAX_BYTES as MAX_SIGNED_BYTES
from ldp_client.documents.signed import SignedStudy
from ldp_client.documents.study import MAX_BYTES, Study

STUDIES_PATH = "/v1/studies/"


def split_study_url(url: str) -> "tuple[str, str]":
    """(the collector's base URL, the study's id) of http(s)://host/v1/studies/ID. Raises InputError."""
    base, path, study_id = url.partition(STUDIES_PATH)
    is_id = study_id and not set(study_id) - set(IDENTIFIER_CHARACTERS)
    if not base.lower().startswith(("http://", "https://")) or not path or not is_id:
        raise InputError(f"{url} is not of the form http://host{STUDIES_PATH}ID")
    return base, study_id


def fetch_study(url: str) -> "tuple[Study, str]":
    """The study at http(s)://host/v1/studies/ID, and the collector's base URL.

    Raises InputError for another kind of URL, TransferError, StudyError, RefusedError for a study
    that needs a newer ldpkit.
    """
    base, study_id = split_study_url(url)
    return fetch_document(base, study_id)[0], base


def fetch_document(collector: str, study_id: str) -> "tuple[Study, str]":
    """The study of that id, not signed, and the collector's identity ("" where it says none).

    Raises as fetch_study does.
    """
    url = f"{collector}{STUDIES_PATH}{study_id}"
    body, identity = _get(url, MAX_BYTES)
    return _same(url, study_id, read_new(Study.from_json, body)), identity


def fetch_signed(collector: str, study_id: str) -> "tuple[SignedStudy, str]":
    """The study of that id with its signatures, not verified yet, and the collector's identity.

    Raises as fetch_study does.
    """
    url = f"{collector}{STUDIES_PATH}{study_id}/signed"
    body, identity = _get(url, MAX_SIGNED_BYTES, ", and was it published with a signature")
    signed = read_new(SignedStudy.from_json, body)
    _same(url, study_id, signed.study)
    return signed, identity


def _same(url: str, study_id: str, study: Study) -> Study:
    if study.id != study_id:
        raise TransferError(f"{url} answered with another study, {study.id}")
    return study


def _get(url: str, most: int, signed: str = "") -> "tuple[bytes, str]":
    try:
        answer = exchange(urllib.request.Request(url, headers={"User-Agent": "ldpkit"}), most)
    except (TransferError, ValueError) as error:
        raise TransferError(f"cannot reach {url}: {printable(error, MOST_CHARACTERS)}") from None
    if answer.status != 200:
        hint = f": is the study's id right{signed}?" if answer.status == 404 else ""
        raise TransferError(f"{url} answered with HTTP status {answer.status}{hint}")
    return answer.body, identity_of(answer)
