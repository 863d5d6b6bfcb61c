/** A device: answers a study once, remembers that it did, and sends the report when the person agrees. */

import { originOf, safeBaseOf } from "./address.js";
import { fail, unloaded } from "./errors.js";
import { openLedger } from "./ledger.js";
import { systemRandom } from "./randomness.js";
import { nearest, parseDecimal } from "./rational.js";
import { drawIdentity, drawPayloads, reportOf, versionOf } from "./report.js";
import { costOf, leftOf, recall, refuseSpending } from "./spending.js";

/**
 * Open the device of this browser profile and origin, or of another ledger.
 *
 * maxEpsilon, maxDelta: the privacy budget over all studies, decimals in strings. maxEpsilonPerCollector: the most that
 * one collector may learn. collector: its base URL, in any spelling. formerly: earlier origins of the same collector.
 * ledger: one of ledgers/, IndexedDB's of that name if left out. transport: makes all requests of the device as fetch
 * does, and perhaps through its `relay`.
 * Throws LdpkitError "ledger" if IndexedDB cannot be used, "input" for a bad budget or address.
 *
 * A report is "held" until the person consents, then "queued", then "sent", "refused" (by the collector,
 * for good) or "uninvited" until it is given an invitation that the collector takes. A "withdrawn" one
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
  const former = formerly.map((url) => originOf(url, "formerly"));
  const kept = await (ledger ?? openLedger(name));
  const { read, write } = kept;
  // Another collector's study of the same id is another study.
  const isIts = (study, report) => report.study === study.id && report.origin === origin;

  /** As in changing.js, on the ledger. Throw LdpkitError "input", "module" or "ledger". */
  const changing = (kind) => (...change) =>
    import("./changing.js").catch(unloaded).then((its) => write((memory) => its[kind](memory, origin, ...change)));
  if (former[0]) await changing("adopt")(former);

  return {
    collector,
    transport,

    /**
     * Perturb every answer once and write spends, permanent answers and report durably; the report is held
     * until `consent`. Throws LdpkitError "input", "answer", "closed", "answered", "budget", "study" or "ledger"; then
     * nothing is written.
     */
    async answer(study, answers, invitation = "") {
      if (invitation !== "") invitation = (await import("./pasted.js").catch(unloaded)).read(invitation);
      study.refuseToday?.(collector, transport);
      // Before the transaction, which would not wait for a hash.
      const identity = await drawIdentity(random);
      return write((memory) => {
        const recalled = recall(study, memory, origin);
        refuseSpending(study, recalled, memory.spent, origin, budget, perCollector);
        const { answered, ...made } = reportOf(
          study,
          drawPayloads(study, answers, random, recalled.map(({ mechanism }) => mechanism), study.one?.place(study, memory)),
          identity,
          transport.relay,
        );
        const version = versionOf(study);
        for (const item of recalled) {
          const { asked } = item;
          let { spend } = item;
          if (!spend) memory.spent.push((spend = { origin, question: asked.id, days: [] }));
          Object.assign(spend, version, { asked: asked.text ?? asked.id, title: study.title, owner: study.owner });
          if (!spend.days.includes(today())) spend.days.push(today());
          if (item.isFresh && answered.includes(asked.id)) {
            for (const kind in budget) spend[kind] = costOf(study, study.one?.paid(recalled, item) ?? [item], kind);
          }
        }
        const report = {
          ...version,
          origin,
          closes: study.closes,
          channel: study.channel,
          collector,
          ...made,
          state: "held",
          invitation,
          publisher: "",
        };
        // Nobody agreed to what an earlier round shows: it never leaves.
        memory.reports = [...memory.reports.filter((one) => !isIts(study, one) || one.state !== "held"), report];
        return report;
      });
    },

    /**
     * Draw the one question that a study asks this device, whatever it will answer, and keep that durably: its place. Only
     * that one is then to be answered. -1 where a study asks all.
     */
    draw: (study) => write((memory) => study.one?.draw(study, memory, random) ?? -1),

    /** Whether this device would refuse to answer the study (again), and its latest report that is left. */
    status: (study) =>
      read((memory) => ({
        answered: recall(study, memory, origin).some(({ problem }) => problem),
        report: memory.reports.findLast((report) => isIts(study, report)),
      })),

    /** What is left of the budget. */
    epsilonLeft: () => read((memory) => nearest(leftOf(budget.epsilon, memory.spent, "epsilon"))),

    /** What this device has told so far, which leaves it never. */
    told: () =>
      import("./told.js").catch(unloaded).then((its) => read((memory) => its.told(memory, budget))),

    /** The person agrees that the report which answers this study, and no other version of it, leaves. */
    consent: changing("consent"),
    invite: changing("invite"),
    withdraw: changing("withdraw"),

    /** Ask for what is to be deleted, then send this collector's queued reports, byte for byte as they were written. */
    async flush(options) {
      // What is queued, uninvited or withdrawn waits for something.
      if (await read(({ reports }) => reports.some(({ state }) => /^[quw]/.test(state)))) {
        const { send } = await import("./sending.js").catch(unloaded);
        await send({ ...kept, collector, origin, move: changing("move"), transport }, options);
      }
    },
  };
}

/** The person's day, YYYY-MM-DD, by minutes in milliseconds: kept beside what was spent, it leaves the device never. */
const today = (now = new Date()) => new Date(now - 6e4 * now.getTimezoneOffset()).toISOString().slice(0, 10);

function limit(text, field) {
  const number = parseDecimal(text);
  return number?.[0] > 0n ? number : fail("input", "must be above 0", field);
}
