/** The hosts that one flush sends to, of two reports through a relay and one in the clear. */

import { webcrypto } from "node:crypto";
globalThis.crypto ??= webcrypto;
import { send } from "../../ldp_client/js/sending.js";
import { move as moveIn } from "../../ldp_client/js/changing.js";
import { memoryLedger } from "../../ldp_client/js/ledgers/memory.js";
const C = "https://collector.example";
const { publicKey } = await crypto.subtle.generateKey({ name: "X25519" }, false, ["deriveBits"]);
const point = new Uint8Array(await crypto.subtle.exportKey("raw", publicKey));
const keys = btoa(String.fromCharCode(1, 0, 32, ...point, 0, 4, 0, 1, 0, 1));
const sent = [];
globalThis.fetch = async (url, o) => { sent.push(new URL(url).host); return new Response(null, { status: 404 }); };
const base = (id, more) => ({ study: id, version: 1, digest: "00".repeat(32), id, secret: "aa", body: "{}", state: "queued", invitation: "", publisher: "c", collector: C, ...more });
const channel = { batches: { hours: 1 }, oblivious: { relay: "https://relay.example/x", keys } };
const ledger = memoryLedger();
await ledger.write((m) => { m.reports = [base("one", { channel, due: 1 }), base("two", { channel, due: 1 }), base("plain", {invitation:"ADAS-CODE"})]; });
await ledger.write((m) => { for (const r of m.reports) if (r.channel) r.due = Date.now() - 5; });
await send({ ...ledger, collector: C, move: (...a) => ledger.write((m) => moveIn(m, C, ...a)) }, { attempts: 1 });
console.log(JSON.stringify(sent));
