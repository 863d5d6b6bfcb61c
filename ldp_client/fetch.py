"""Fetching a study document from a collector."""

import urllib.error
import urllib.request
from http.client import HTTPException

from ldp_client.terms import read_new
from ldp_client.upload import open_url
from schemas.errors import InputError, TransferError
from schemas.signed import MAX_BYTES as MAX_SIGNED_BYTES
from schemas.signed import SignedStudy
from schemas.study import MAX_BYTES, Study

STUDIES_PATH = "/v1/studies/"


def split_study_url(url: str) -> "tuple[str, str]":
    """(the collector's base URL, the study's id) of http(s)://host/v1/studies/ID. Raises InputError."""
    base, path, study_id = url.partition(STUDIES_PATH)
    if not base.lower().startswith(("http://", "https://")) or not path or not study_id:
        raise InputError(f"{url} is not of the form http://host{STUDIES_PATH}ID")
    return base, study_id


def fetch_study(url: str) -> "tuple[Study, str]":
    """The study at http(s)://host/v1/studies/ID, and the collector's base URL.

    Raises InputError for another kind of URL, TransferError, StudyError, RefusedError for a study
    that needs a newer ldpkit.
    """
    base, study_id = split_study_url(url)
    return fetch_document(base, study_id), base


def fetch_document(collector: str, study_id: str) -> Study:
    """The study of that id, not signed. Raises as fetch_study does."""
    url = f"{collector}{STUDIES_PATH}{study_id}"
    return _same(url, study_id, read_new(Study.from_json, _get(url, MAX_BYTES)))


def fetch_signed(collector: str, study_id: str) -> SignedStudy:
    """The study of that id with its signatures, not verified yet. Raises as fetch_study does."""
    url = f"{collector}{STUDIES_PATH}{study_id}/signed"
    signed = read_new(SignedStudy.from_json, _get(url, MAX_SIGNED_BYTES))
    _same(url, study_id, signed.study)
    return signed


def _same(url: str, study_id: str, study: Study) -> Study:
    if study.id != study_id:
        raise TransferError(f"{url} answered with another study, {study.id}")
    return study


def _get(url: str, most: int) -> bytes:
    try:
        with open_url(urllib.request.Request(url, headers={"User-Agent": "ldpkit"})) as response:
            return response.read(most + 1)
    except urllib.error.HTTPError as error:
        with error:
            hint = ": is the study's id right?" if error.code == 404 else ""
            raise TransferError(f"{url} answered with HTTP status {error.code}{hint}") from None
    except (OSError, ValueError, HTTPException) as error:
        raise TransferError(f"cannot reach {url}: {getattr(error, 'reason', error)}") from None
