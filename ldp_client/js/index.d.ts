/** An exact fraction. `nearest` is there when it was read from a document. */
export type Rational = readonly [numerator: bigint, denominator: bigint, nearest?: number];
export type Bounds = readonly [low: Rational, high: Rational];

export type ErrorCode = "study" | "answer" | "answered" | "budget" | "closed" | "ledger" | "input";

export class LdpkitError extends Error {
  readonly code: ErrorCode;
  /** Dotted path of what is wrong, "" for all of it. */
  readonly field: string;
  readonly problem: string;
}

export interface NumberField {
  readonly id: string;
  readonly bounds: Bounds;
}

export interface YesNoField {
  readonly id: string;
  readonly ask: "yes_no";
}

export type MechanismName =
  | "laplace"
  | "gaussian"
  | "randomized_response"
  | "oue"
  | "sue"
  | "subset_selection"
  | "olh"
  | "hadamard"
  | "gaussian_statistics"
  | "gaussian_record";

interface Asked<Ask extends string, Name extends MechanismName> {
  readonly id: string;
  readonly ask: Ask;
  readonly text?: string;
  readonly mechanism: { readonly name: Name; readonly epsilon: Rational; readonly delta?: Rational };
  readonly model: { readonly name: string };
}

export interface NumberQuestion extends Asked<"number", "laplace" | "gaussian"> {
  readonly bounds: Bounds;
}

export interface ChoiceQuestion extends Asked<
    "choice",
    "randomized_response" | "oue" | "sue" | "subset_selection" | "olh" | "hadamard"
  > {
  /** Labels; or, for choices by count, the whole numbers below `length`, answered as numbers. */
  readonly choices: readonly string[] | { readonly length: number };
}

export interface YesNoQuestion extends Asked<"yes_no", "randomized_response"> {
  readonly choices: readonly ["no", "yes"];
}

export interface RecordQuestion extends Asked<"record", "gaussian_statistics" | "gaussian_record"> {
  readonly features: readonly NumberField[];
  readonly norm: Rational;
  readonly response: NumberField | YesNoField;
}

export type Question = NumberQuestion | ChoiceQuestion | YesNoQuestion | RecordQuestion;

export interface Study {
  readonly format: "ldpkit.study/1";
  readonly id: string;
  readonly version: number;
  readonly title: string;
  readonly purpose?: string;
  /** Days, YYYY-MM-DD. */
  readonly opens?: string;
  readonly closes?: string;
  readonly questions: readonly Question[];
  readonly document: unknown;
  /** The canonical JSON text, and the SHA-256 of its UTF-8 bytes in hexadecimal. */
  readonly canonical: string;
  readonly digest: string;
}

/** Parse and validate a study document, as text or bytes of UTF-8. Rejects with LdpkitError "study". */
export function parseStudy(source: string | Uint8Array): Promise<Study>;

/** null, undefined and NaN are a missing number: it counts as the middle of the bounds. */
export type NumberAnswer = number | null | undefined;
export type YesNoAnswer = boolean | "yes" | "no";
export type RecordAnswer = { readonly [field: string]: NumberAnswer | YesNoAnswer };
export type Answer = NumberAnswer | YesNoAnswer | string | RecordAnswer;
export type Answers = { readonly [question: string]: Answer };

/** size → that many random bytes, as good as crypto.getRandomValues. */
export type RandomSource = (size: number) => Uint8Array;

export interface Mechanism {
  readonly name: MechanismName;
  /** Bytes, the same for every answer. */
  readonly payloadSize: number;
  /** The integers that decide the mechanism's law, such as levels or threshold. */
  readonly integers: { readonly [name: string]: bigint };
  /** One noisy payload. Throws LdpkitError "answer", before any noise is drawn, if the answer does not fit. */
  perturb(answer: Answer, random?: RandomSource): Uint8Array;
}

/** Throws LdpkitError "study" where ε or δ is too small for the question. */
export function mechanismFor(question: Question): Mechanism;

/** One report with a fresh id, kept nowhere: a Device is what makes it the only one. */
export function perturbAnswers(
  study: Study,
  answers: Answers,
  random?: RandomSource,
): { id: string; body: string };

/**
 * held: written, waits for consent. queued: may leave. sent: the collector has it. refused: it never
 * will. withdrawn: its body is wiped and its deletion is asked for until that is acknowledged.
 */
export type ReportState = "held" | "queued" | "sent" | "refused" | "withdrawn";

export interface StoredReport {
  readonly id: string;
  readonly study: string;
  readonly version: number;
  readonly state: ReportState;
  /** The bytes that leave, as text; "" once withdrawn. */
  readonly body: string;
}

/** Methods reject with LdpkitError "ledger" when the storage cannot be used. */
export interface Device {
  /**
   * Perturb every answer once and write spend and report durably, in one transaction; the report is held.
   * Rejects with LdpkitError "answer", "closed", "answered" or "budget"; then nothing is written.
   */
  answer(study: Study, answers: Answers): Promise<StoredReport>;
  /** Whether this device answered any question of the study, and its report until that is deleted. */
  status(study: Study): Promise<{ answered: boolean; report: StoredReport | undefined }>;
  /** What is left of the budget, in nats. */
  epsilonLeft(): Promise<number>;
  /** The person agrees that the report leaves. */
  consent(reportId: string): Promise<StoredReport | undefined>;
  /** Wipe the report; where it may have left, queue the request to delete it. The spend stays. */
  withdraw(reportId: string): Promise<StoredReport | undefined>;
  /** Send what is queued and ask for deletions, each up to `attempts` times (5) with full jitter. */
  flush(options?: { attempts?: number }): Promise<void>;
}

export interface DeviceOptions {
  /** The budget over all studies of this origin, a decimal in a string. */
  maxEpsilon: string;
  /** Base URL of the collector; the page's own origin if left out. */
  collector?: string;
  /** Name of the IndexedDB database, "ldpkit" if left out. */
  name?: string;
  random?: RandomSource;
}

/** Open this origin's device. Rejects with LdpkitError "ledger" or "input". */
export function openDevice(options: DeviceOptions): Promise<Device>;
