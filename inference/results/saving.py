"""Save posterior.json and the draws of each question in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.results.provenance import Provenance, made_now
from ldp_client.documents.errors import InputError
from ldp_client.files.disk import replacing

if TYPE_CHECKING:
    from inference.results.earlier_steps import Earlier
    from inference.results.posterior import Posterior

RESULT, EARLIER = "posterior.json", "earlier"


def save_posteriors(
    posteriors: Mapping[str, Posterior],
    folder: Path,
    made: Provenance | None = None,
    earlier: Earlier | None = None,
) -> None:
    """Write posterior.json for all questions of one study, and each question's draws.

    made: the fit's provenance. earlier: the steps before the fit.
    """
    first = next(iter(posteriors.values()))
    questions = {name: posterior.to_document() for name, posterior in posteriors.items()}
    document: dict[str, Any] = {"study_digest": first.study_digest, "seed": first.seed}
    document["made"] = (made or made_now()).to_document()
    if earlier is not None and earlier.lines:
        document[EARLIER] = earlier.to_document()
    document["questions"] = {**_saved_before(folder / RESULT, document, set(questions)), **questions}
    folder.mkdir(parents=True, exist_ok=True)
    # JSON has no NaN; R-hat is NaN for a parameter without spread.
    text = json.dumps(_without_nan(document), indent=1, ensure_ascii=False, allow_nan=False)
    with replacing(str(folder / RESULT)) as file:
        file.write(text + "\n")
    for name, posterior in posteriors.items():
        (folder / f"{name}.nc").write_bytes(posterior.to_netcdf())


def _saved_before(path: Path, head: dict[str, Any], replaced: set[str]) -> dict[str, Any]:
    """Return the questions to keep from an earlier posterior.json. Raises InputError if they do not match."""
    if path.parent.exists() and not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a folder", code="result.not_a_folder")
    if not path.exists():
        _refuse_other_draws(path.parent, replaced)
        return {}
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        questions: dict[str, Any] = {**saved["questions"]}
        study, seed = saved["study_digest"], saved["seed"]
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{path} is no result of a fit: choose another folder", code="result.folder_of_other_files"
        ) from None
    if study != head["study_digest"]:
        raise InputError(
            f"{path.parent} holds a fit of another study ({study}): choose another folder",
            code="result.folder_of_other_study",
        )
    _refuse_other_draws(path.parent, replaced - set(questions))
    kept = {name: found for name, found in questions.items() if name not in replaced}
    if kept and seed != head["seed"]:
        raise InputError(
            f"{path.parent} holds {min(kept)} under seed {seed}, not {head['seed']}: choose another folder",
            code="result.folder_of_other_seed",
        )
    return kept


def _refuse_other_draws(folder: Path, names: set[str]) -> None:
    """Raise InputError if draws would overwrite a file that posterior.json does not list."""
    for name in sorted(names):
        if (folder / f"{name}.nc").exists():
            raise InputError(
                f"{folder} holds {name}.nc, which is no result of a fit: choose another folder",
                code="result.draws_of_other_fit",
            )


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value
