"""The error for a missing module: it names the extra to install. ldpkit's own files belong to no extra."""

from ldp_client.documents.errors import MissingExtraError

OWN = ("collector", "inference", "ldp_client", "ldpkit", "schemas", "summaries")
# The packages of each extra. Any other package is of the last one.
EXTRAS = {
    "collector": "alembic cryptography flask granian prometheus_client psycopg segno sqlalchemy werkzeug",
    "demo": "statsmodels",
    "tables": "pandas pyarrow",
    "inference": "",
}


def lacking(error: ModuleNotFoundError) -> MissingExtraError | None:
    """Return the error that names the extra of a module; None for a module that no extra contains.

    A module of ldpkit itself is missing because of a bug in ldpkit, or a broken installation.
    """
    package = (error.name or "").split(".")[0]
    if not package or package in OWN:
        return None
    extra = next((extra for extra, packages in EXTRAS.items() if package in packages.split()), "inference")
    return MissingExtraError(extra, package)
