"""Study documents in files."""

from schemas.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from schemas.study import Study


def load_study(path: str) -> "Study":
    """Read a study document. Raises InputError, StudyError."""
    from schemas.study import Study

    return Study.from_json(read_bytes(path))


def read_bytes(path: str) -> bytes:
    """A file's content. Raises InputError."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
