/** A device: answers a study once, within its budget, remembers it, and sends the report when the person agrees. */

import { originOf, safeBaseOf } from "./address.js";
import { fail, unloaded } from "./errors.js";
import { openLedger } from "./ledger.js";
import { mechanismFor } from "./mechanisms/index.js";
import { systemRandom } from "./randomness.js";
import { ZERO, add, isBelow, nearest, parseDecimal, subtract } from "./integers.js";
import { drawIdentity, drawPayloads, reportOf, versionOf } from "./report.js";

const loadChanging = () => import("./changing.js").catch(unloaded);

/**
 * Open the device of this browser profile and origin, or of another ledger, as index.d.ts says.
 *
 * A report is "held" until the person consents, then "queued", then "sent", "refused" (by the collector,
 * for good) or "ticketless" until it is given a ticket that the collector takes. A "withdrawn" one
 * has lost its body and waits for its deletion.
 */
export async function openDevice({
  maxEpsilon,
  maxDelta = "0.0001",
  maxEpsilonPerCollector = maxEpsilon,
  collector: given = globalThis.location?.origin,
  formerly = [],
  name = "ldpkit",
  ledger,
  transport: pending = (...request) => fetch(...request),
  random = systemRandom,
}) {
  const transport = await pending;
  const budget = { epsilon: limit(maxEpsilon, "maxEpsilon"), delta: limit(maxDelta, "maxDelta") };
  const perCollector = limit(maxEpsilonPerCollector, "maxEpsilonPerCollector");
  const collector = safeBaseOf(given);
  const origin = originOf(collector);
  const where = { collector, origin };
  const former = formerly.map((url) => originOf(url, "formerly"));
  const kept = await (ledger ?? openLedger(name));
  const { read, write } = kept;
  // Another collector's study of the same id is another study.
  const isIts = (study, report) => report.study === study.id && report.origin === origin;

  /** As in changing.js, on the ledger. */
  const changing = (kind) => (...change) =>
    loadChanging().then((changes) => write((memory) => changes[kind](memory, origin, ...change)));
  if (former[0]) await changing("adopt")(former);

  /** Perturb, count and keep, in one transaction. */
  async function answer(study, answers, ticket = "") {
    if (ticket !== "") ticket = (await loadChanging()).readTicket(ticket);
    study.refuseToday?.(collector, transport);
    // Before the transaction, which would not wait for a hash.
    const identity = await drawIdentity(random);
    return write((memory) => {
      // 1. What was answered before, and what this costs.
      const recalled = recall(study, memory, origin);
      refuseSpending(study, recalled, memory.spent, origin, budget, perCollector);
      // 2. The noise, once.
      const mechanisms = recalled.map(({ mechanism }) => mechanism);
      const drawn = drawPayloads(study, answers, random, mechanisms, study.one?.place(study, memory));
      const { answered, ...made } = reportOf(study, drawn, identity, transport.relay);
      // 3. The spends.
      const version = versionOf(study);
      for (const item of recalled) {
        let { asked, isFresh, spend } = item;
        if (!spend) memory.spent.push((spend = { origin, question: asked.id, days: [] }));
        const { title, owner } = study;
        Object.assign(spend, version, { title, owner, asked: asked.text ?? asked.id });
        if (!spend.days.includes(today())) spend.days.push(today());
        if (!isFresh || !answered.includes(asked.id)) continue;
        const paid = study.one?.paid(recalled, item) ?? [item];
        for (const kind in budget) spend[kind] = costOf(study, paid, kind);
      }
      // 4. The report, in place of an earlier one that nobody agreed to, which never leaves.
      const { closes, channel } = study;
      const report = {
        ...version, ...where, ...made, closes, channel, state: "held", ticket,
      };
      const isPast = (other) => isIts(study, other) && other.state === "held";
      memory.reports = memory.reports.filter((other) => !isPast(other)).concat(report);
      return report;
    });
  }

  return {
    collector,
    transport,
    answer,
    draw: (study) => write((memory) => study.one?.draw(study, memory, random) ?? -1),
    status: (study) =>
      read((memory) => ({
        answered: recall(study, memory, origin).some(({ problem }) => problem),
        report: memory.reports.findLast((report) => isIts(study, report)),
      })),
    epsilonLeft: () => read((memory) => nearest(leftOf(budget.epsilon, memory.spent, "epsilon"))),
    told: () => loadChanging().then(({ told }) => read((memory) => told(memory, budget))),
    consent: changing("consent"),
    giveTicket: changing("giveTicket"),
    withdraw: changing("withdraw"),
    async flush(options) {
      // What is queued, ticketless or withdrawn waits for something.
      const waits = await read(({ reports }) => reports.some(({ state }) => /^[qtw]/.test(state)));
      if (!waits) return;
      const { send } = await import("./sending.js").catch(unloaded);
      await send({ ...kept, ...where, transport, move: changing("move") }, options);
    },
  };
}

/** The person's day, YYYY-MM-DD, which never leaves the device. */
const today = (now = new Date()) => new Date(now - 6e4 * now.getTimezoneOffset()).toISOString().slice(0, 10);

function limit(text, field) {
  const number = parseDecimal(text);
  return number?.[0] > 0n ? number : fail("input", "must be above 0", field);
}

/** Return a study's questions as {asked, spend (its row), problem, isFresh (costs something), mechanism}. */
function recall(study, memory, origin) {
  const rows = memory.spent.filter((row) => row.study === study.id && row.origin === origin);
  // A lower version than one that was answered, or another document of the same version.
  const isPast = rows.some((row) => row.version >= study.version && row.digest !== study.digest);
  // A public field would send without noise what an earlier version asked behind noise.
  const past = (isPast || study.wasAsked?.(rows)) && { problem: "is not newer" };
  return study.questions.map((asked) => {
    const mechanism = mechanismFor(asked);
    const spend = rows.find((row) => row.question === asked.id);
    return {
      asked,
      spend,
      problem: spend && "was answered before",
      isFresh: true,
      mechanism,
      ...mechanism.recall?.(study, memory, spend, origin),
      ...past,
    };
  });
}

/** Throw "answered" for a repeated question, "budget" if a budget or a collector's part is exceeded. */
function refuseSpending(study, recalled, spent, origin, budget, perCollector) {
  for (const { asked, problem } of recalled) if (problem) fail("answered", problem, asked.id);
  const refuseAbove = (limit, rows, kind, words) => {
    const cost = costOf(study, recalled, kind);
    const left = leftOf(limit, rows, kind);
    if (isBelow(left, cost)) fail("budget", `costs ${kind} ${nearest(cost)}, ${words} is ${nearest(left)}`);
  };
  for (const kind in budget) refuseAbove(budget[kind], spent, kind, "left");
  refuseAbove(perCollector, spent.filter((row) => row.origin === origin), "epsilon", "left for this collector");
}

/** The epsilon or delta of the fresh questions: their sum, or the largest for a study that asks one of them. */
const costOf = (study, recalled, kind) =>
  recalled
    .map(({ asked, isFresh }) => (isFresh && asked.mechanism[kind]) || ZERO)
    .reduce(study.one?.dearer ?? add);

/** What rows leave of a limit of epsilon or delta, exactly. A question that was not drawn costs nothing. */
const leftOf = (limit, rows, kind) => rows.map((row) => row[kind] ?? ZERO).reduce(subtract, limit);
