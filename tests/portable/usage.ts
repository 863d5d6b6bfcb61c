// Compiled, never run: how a typed page uses the port, and what its types refuse.
import { LdpkitError, fetchStudy, mechanismFor, oblivious, openDevice, parseStudy } from "ldpkit";
import type { Device, Ledger, Question, Study, Transport } from "ldpkit";
import { type ExpoDatabase, expoLedger } from "ldpkit/ledgers/expo";
import { memoryLedger } from "ldpkit/ledgers/memory";
import { nodeLedger } from "ldpkit/ledgers/node";
import type { StudyElement } from "ldpkit/element";
import { LdpStudy, type Words } from "ldpkit/react";

async function answerOnce(text: string): Promise<string> {
  const study: Study = await parseStudy(text);
  const formerly = ["https://old.example"];
  const transport: Transport = (url, options) => fetch(url, options);
  const device: Device = await openDevice({ maxEpsilon: "4", maxEpsilonPerCollector: "2", formerly, transport });
  const answers = { hours: 3.5, ever: true, rating: { age: 30, job: "part", rate: 4 } };
  const report = await device.answer(study, answers, "ticket");
  await device.consent(study);
  await device.flush({ attempts: 2 });
  const { answered, report: kept } = await device.status(study);
  if (kept?.state === "ticketless") await device.giveTicket(study.id, "another");
  const asked: number = answered && kept?.state === "sent" ? await device.withdraw(study.id) : 0;
  const leaves: number = kept?.due ?? 36e5 * (study.channel?.batches.hours ?? 0);
  const { limit, epsilon, studies } = await device.told();
  const days: string[] = studies.flatMap(({ origin, days }) => [origin, ...days]);
  const issuer: string = study.channel?.tickets?.issuer ?? "";
  return report.body.slice(asked) + (limit - epsilon) + days.join() + leaves + issuer;
}

function describe(question: Question): string {
  if (question.ask === "number") return `${question.bounds[0][0] / question.bounds[0][1]}`;
  if (question.ask === "record") return question.features.map(({ id }) => id).join();
  return "join" in question.choices ? question.choices.join() : `${question.choices.length}`;
}

function rounds({ sample_one_question, questions }: Study): string {
  const { name, of, epsilon, delta } = questions[0]!.mechanism;
  return `${name} ${of ?? ""} ${epsilon[0]} ${delta?.[0] ?? 0n} ${sample_one_question ?? false}`;
}

function tries(question: Question): Uint8Array[] {
  const { payloadSize, perturb } = mechanismFor(question);
  return ["no", "yes"].map((answer) => perturb(answer)).filter(({ length }) => length === payloadSize);
}

async function relayed(relay: string, keys: string): Promise<Study> {
  const device = await openDevice({ maxEpsilon: "4", transport: oblivious({ relay, keys }) });
  return fetchStudy(device, "habits");
}

async function devices(database: ExpoDatabase, collector: string): Promise<Device[]> {
  const ledgers: Ledger[] = [memoryLedger(), await nodeLedger("kept.db"), expoLedger(database)];
  return Promise.all(ledgers.map((ledger) => openDevice({ maxEpsilon: "4", collector, ledger })));
}

const frame = (element: StudyElement): string => element.state;
const words: Words = { draw: "Bruit" };
const shown = LdpStudy({ collector: "https://c.example", study: "habits", maxEpsilon: "4", words });

function reason(error: unknown): string {
  return error instanceof LdpkitError && error.code === "budget" ? error.problem : "";
}

async function misuse(study: Study): Promise<void> {
  // @ts-expect-error a budget is a decimal in a string
  await openDevice({ maxEpsilon: 4 });
  // @ts-expect-error a transport is a function
  await openDevice({ maxEpsilon: "4", transport: "https://relay.example" });
  // @ts-expect-error a study is immutable
  study.version = 2;
  // @ts-expect-error consent is to a study, not to a report's id
  await (await openDevice({ maxEpsilon: "4" })).consent("0123");
  // @ts-expect-error an answer needs the parsed study
  await (await openDevice({ maxEpsilon: "4" })).answer("{}", {});
  // @ts-expect-error a number is no text
  LdpStudy({ collector: "https://c.example", study: "habits", maxEpsilon: 4 });
  // @ts-expect-error a relay needs keys
  void oblivious({ relay: "https://relay.example.org" });
  // @ts-expect-error a path is no ledger
  void openDevice({ maxEpsilon: "4", ledger: "kept.db" });
  // @ts-expect-error only these ledgers are public
  void import("ldpkit/ledgers/sqlite");
  // @ts-expect-error no such state
  const state: Awaited<ReturnType<Device["answer"]>>["state"] = "lost";
  void state;
}

void [answerOnce, describe, rounds, tries, relayed, devices, frame, shown, reason, misuse];
