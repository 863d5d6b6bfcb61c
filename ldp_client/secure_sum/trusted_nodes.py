"""The nodes that a device's owner trusts with secret shares.

All nodes of a study together can read every answer exactly, and a study's author names them. So it is the
device's owner who says which nodes are run by parties that would not all work together.
"""

from ldp_client.documents.errors import DocumentError, InputError, RefusedError
from ldp_client.documents.route import NODE_ADDRESS, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldp_client.documents.study import Study

FEWEST_HOSTS = 2


class TrustedNodes:
    """The nodes of the owner's choice.

    addresses: each as a study names it, https://host#KEYS, keys and all; none: no secure sum is answered.
    Raises InputError for one that is not of that form.
    """

    def __init__(self, addresses: "Sequence[str]") -> None:
        nodes = [Node(_address(address)) for address in addresses]
        self._keys = {node.url: (node.sealing_key, node.signing_key) for node in nodes}
        if len(self._keys) < len(nodes):
            raise InputError("nodes: one address is named twice")

    def refuse_others(self, study: "Study") -> None:
        """Raises RefusedError unless all nodes of the study are trusted, and they are not one in disguise."""
        route = study.route
        assert route is not None
        for node in route.nodes:
            self.refuse_unknown(node.url)
            if self._keys[node.url] != (node.sealing_key, node.signing_key):
                raise RefusedError(
                    f"the node {node.url} of study {study.id} has other keys than it is trusted with"
                )
        hosts = {host_of(node.url) for node in route.nodes}
        if len(hosts) < FEWEST_HOSTS:
            raise RefusedError(
                f"all nodes of study {study.id} are on the host {hosts.pop()}: one party reads all"
            )
        keys = {key for node in route.nodes for key in (node.sealing_key, node.signing_key)}
        if len(keys) < 2 * len(route.nodes):
            raise RefusedError(f"nodes of study {study.id} share a key: they are one party, which reads all")

    def refuse_unknown(self, url: str) -> None:
        """Raises RefusedError for the address of no trusted node: it could be any service within reach."""
        if url not in self._keys:
            raise RefusedError(
                f"the node {url} is not one that this device's owner trusts: all nodes of a secure sum read "
                "every answer together; who trusts it not to work with the others names it, with its keys"
            )


def host_of(url: str) -> str:
    """The host's name in small letters, without user, port and a dot at its end."""
    place = url.partition("://")[2].partition("/")[0].split("@")[-1]
    name = place[1:].partition("]")[0] if place.startswith("[") else place.partition(":")[0]
    return name.lower().rstrip(".")


def _address(text: str) -> str:
    try:
        return NODE_ADDRESS.read(text, "nodes", DocumentError)
    except DocumentError as error:
        raise InputError(f"nodes: a trusted node {error.problem}") from None
