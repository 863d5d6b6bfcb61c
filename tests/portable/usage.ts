// Compiled, never run: how a typed page uses the port, and what its types refuse.
import { LdpkitError, mechanismFor, openDevice, parseStudy, perturbAnswers } from "../../js/index.js";
import type { Device, Question, Study, Transport } from "../../js/index.js";

async function answerOnce(text: string): Promise<string> {
  const study: Study = await parseStudy(text);
  const formerly = ["https://old.example"];
  const transport: Transport = (url, options) => fetch(url, options);
  const device: Device = await openDevice({ maxEpsilon: "4", maxEpsilonPerCollector: "2", formerly, transport });
  const answers = { hours: 3.5, ever: true, rating: { age: 30, job: "part", rate: 4 } };
  const report = await device.answer(study, answers, "invitation");
  await device.consent(study);
  await device.flush({ attempts: 2 });
  const { answered, report: kept } = await device.status(study);
  if (kept?.state === "uninvited") await device.invite(study.id, "another");
  const asked: number = answered && kept?.state === "sent" ? await device.withdraw(study.id) : 0;
  const leaves: number = kept?.due ?? 36e5 * (study.channel?.batches.hours ?? 0);
  const { limit, epsilon, studies } = await device.told();
  const days: string[] = studies.flatMap(({ origin, days }) => [origin, ...days]);
  const issuer: string = study.channel?.tokens?.issuer ?? "";
  return report.body.slice(asked) + (limit - epsilon) + days.join() + leaves + issuer;
}

function describe(question: Question): string {
  if (question.ask === "number") return `${question.bounds[0][0] / question.bounds[0][1]}`;
  if (question.ask === "record") return question.features.map(({ id }) => id).join();
  return "join" in question.choices ? question.choices.join() : `${question.choices.length}`;
}

function rounds({ sample_one_question, questions }: Study): string {
  const { name, of, instantaneous_epsilon } = questions[0]!.mechanism;
  return `${name} ${of ?? ""} ${instantaneous_epsilon?.[0] ?? 0n} ${sample_one_question ?? false}`;
}

function twoStages(question: Question, random: (size: number) => Uint8Array): Uint8Array | undefined {
  const { quantise, permanent, instantaneous } = mechanismFor(question);
  return permanent && instantaneous?.(permanent(quantise("yes"), random), random);
}

function levels(question: Question): bigint {
  return mechanismFor(question).integers["levels"] ?? 0n;
}

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
  // @ts-expect-error a report needs the parsed study
  perturbAnswers("{}", {});
  // @ts-expect-error no such state
  const state: Awaited<ReturnType<Device["answer"]>>["state"] = "lost";
  void state;
}

void [answerOnce, describe, rounds, twoStages, levels, reason, misuse];
