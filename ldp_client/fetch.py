"""Fetching a study document from a collector."""

import urllib.error
import urllib.request
from http.client import HTTPException

from ldp_client.upload import TIMEOUT_SECONDS
from schemas.errors import InputError, TransferError
from schemas.study import MAX_BYTES, Study

STUDIES_PATH = "/v1/studies/"


def fetch_study(url: str) -> "tuple[Study, str]":
    """The study at http(s)://host/v1/studies/ID, and the collector's base URL.

    Raises InputError for another kind of URL, TransferError, StudyError.
    """
    base, path, study_id = url.partition(STUDIES_PATH)
    if not base.startswith(("http://", "https://")) or not path or not study_id:
        raise InputError(f"{url} is not of the form http://host{STUDIES_PATH}ID")
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            text = response.read(MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise TransferError(f"{url} answered with HTTP status {error.code}") from None
    except (OSError, ValueError, HTTPException) as error:
        raise TransferError(f"cannot reach {url}: {getattr(error, 'reason', error)}") from None
    study = Study.from_json(text)
    if study.id != study_id:
        raise TransferError(f"{url} answered with another study, {study.id}")
    return study, base
