/** Whether a report leaves though another one waits for a token that is never given: the days that it took. */
import { send } from "../../js/sending.js";
import { move as moveIn } from "../../js/changing.js";
import { memoryLedger } from "../../js/ledgers/memory.js";
const DAY = 864e5;
let now = 20000 * DAY + 1000;
Date.now = () => now;
const C = "https://collector.example";
const key = "MIIBUjA9BgkqhkiG9w0BAQowMKANMAsGCWCGSAFlAwQCAqEaMBgGCSqGSIb3DQEBCDALBglghkgBZQMEAgKiAwIBMAOCAQ8AMIIBCgKCAQEA" + "z" + "A".repeat(339) + "BQIDAQAB";
const tokens = { issuer: "https://issuer.example", keys: [{ key }] };
globalThis.fetch = async (url) => {
  if (url.includes("/v1/tokens")) return new Response('{"type":"urn:ldpkit:problem:invitation-needed"}', { status: 403, headers: { "Content-Type": "application/problem+json" } });
  const id = url.split("/").at(-1);
  return new Response(JSON.stringify({ id, result: "stored" }), { status: 201, headers: { "Content-Type": "application/json", "LDPKit-Collector": "c" } });
};
const base = (id, more) => ({ study: id, version: 1, digest: "00".repeat(32), id, secret: "aa", body: "{}", state: "queued", invitation: "", publisher: "c", collector: C, origin: C, ...more });
async function trial(other) {
  const ledger = memoryLedger();
  await ledger.write((m) => { m.reports = [base("ready", { channel: { batches: { hours: 24 }, tokens }, token: "T", due: now }), other]; });
  const isOwn = ({ origin }) => origin === C;
  const move = (...a) => ledger.write((m) => moveIn(m, isOwn, ...a));
  for (let day = 1; day <= 40; day++) {
    now += DAY;
    await send({ ...ledger, collector: C, origin: C, isOwn, move, transport: fetch }, { attempts: 1 });
    const state = await ledger.read(({ reports }) => reports.find(({ id }) => id === "ready").state);
    if (state === "sent") return day;
  }
  return 0;
}
const channel = { batches: { hours: 24 }, tokens };
const refused = await trial(base("refused", { channel, invitation: "WRONG" }));
const elsewhere = await trial(base("elsewhere", { origin: "https://other.example", collector: "https://other.example", channel, invitation: "CODE" }));
console.log(JSON.stringify({ refused, elsewhere }));
