"""The nodes that a device's owner trusts with secret shares.

All nodes of a study together can read every answer exactly, and the study's author names them. So the
device's owner must list the nodes whose operators would not all collude.
"""

from collections.abc import Sequence

from ldp_client.documents.errors import DocumentError, InputError, RefusedError
from ldp_client.documents.protocol import NODE_ADDRESS, Node
from ldp_client.documents.study import Study

FEWEST_HOSTS = 2


class TrustedNodes:
    """The nodes that the owner trusts.

    addresses: each as in a study, https://host#KEYS, with the keys. Without any, no secure sum is answered.
    Raises InputError for an address of another form.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        nodes = [Node(_address(address)) for address in addresses]
        self._keys = {node.url: (node.sealing_key, node.signing_key) for node in nodes}
        if len(self._keys) < len(nodes):
            raise InputError.say("device.node_twice")

    def refuse_others(self, study: Study) -> None:
        """Raise RefusedError unless all nodes of the study are trusted, and not one node in disguise."""
        protocol = study.protocol
        assert protocol is not None
        for node in protocol.nodes:
            self.refuse_unknown(node.url)
            if self._keys[node.url] != (node.sealing_key, node.signing_key):
                raise RefusedError.say("device.node_keys", node=node.url, study=study.id)
        hosts = {host_of(node.url) for node in protocol.nodes}
        if len(hosts) < FEWEST_HOSTS:
            raise RefusedError.say("device.nodes_one_host", study=study.id, host=hosts.pop())
        keys = {key for node in protocol.nodes for key in (node.sealing_key, node.signing_key)}
        if len(keys) < 2 * len(protocol.nodes):
            raise RefusedError.say("device.nodes_one_key", study=study.id)

    def refuse_unknown(self, url: str) -> None:
        """Raise RefusedError if no trusted node has this address: it could be any reachable service."""
        if url not in self._keys:
            raise RefusedError.say("device.node_unknown", url=url)


def host_of(url: str) -> str:
    """Return the host's name in lower case, without user, port and trailing dot."""
    place = url.partition("://")[2].partition("/")[0].split("@")[-1]
    name = place[1:].partition("]")[0] if place.startswith("[") else place.partition(":")[0]
    return name.lower().rstrip(".")


def _address(text: str) -> str:
    try:
        address: str = NODE_ADDRESS.read(text, "nodes", DocumentError)
    except DocumentError as error:
        raise InputError.say("device.node", problem=error.problem) from None
    return address
