import type { Transport } from "./index.js";

/**
 * A transport by which all requests of a device go, encrypted for one collector, through a relay (RFC 9458):
 * `openDevice({ collector, transport: oblivious({ relay, keys }) })`. The relay sees who sends, when, and one of a few
 * sizes. The collector sees the content, and when the relay forwards it.
 *
 * relay: the relay's URL; https, or http on this machine. keys: the gateway's key configuration in base64, as
 * `ldpkit ohttp show` prints it. Rejects with LdpkitError "input" if either is wrong or the platform lacks X25519.
 */
export function oblivious(options: { relay: string; keys: string }): Promise<Transport>;
