/** An exact fraction. `nearest` is there when it was read from a document. */
export type Rational = readonly [numerator: bigint, denominator: bigint, nearest?: number];
export type Bounds = readonly [low: Rational, high: Rational];

export type ErrorCode =
  /** The study's document is wrong, or this module does not know all that it asks, or its report is too large to send. */
  | "study"
  /** An answer does not fit its question; nothing was drawn. */
  | "answer"
  /** This device has answered the question before. */
  | "answered"
  /** The answers would cost more than the person's budget has left. */
  | "budget"
  /** It is not one of the study's days, or its collector takes no reports. */
  | "closed"
  /** What is kept here cannot be used; nothing was answered. */
  | "ledger"
  /** A part of this module did not load: try again, then reload the page. */
  | "module"
  /** An argument is wrong. */
  | "input";

export class LdpkitError extends Error {
  readonly code: ErrorCode;
  /** Dotted path of what is wrong, "" for all of it. */
  readonly field: string;
  /** What is wrong; of code "answer" the end of a key of ldp_client/words, "script.answer." and this. */
  readonly problem: string;
}

export interface NumberField {
  readonly id: string;
  /** What people read in place of its id. */
  readonly text?: string;
  /** What the number counts, such as "hours". */
  readonly unit?: string;
  readonly bounds: Bounds;
}

/** A number that is cut into bins, for sampled products. */
export interface CutField extends NumberField {
  readonly cuts: readonly Rational[];
}

export interface ChoiceField {
  readonly id: string;
  readonly text?: string;
  readonly ask: "choice";
  readonly choices: readonly string[];
}

export interface YesNoField {
  readonly id: string;
  readonly text?: string;
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
  | "memoized"
  | "gaussian_statistics"
  | "gaussian_record"
  | "sampled_products";

/** What a study states of a mechanism. */
export interface Stated<Name extends MechanismName = MechanismName> {
  readonly name: Name;
  /** In nats; of a memoized question that of all reports together. */
  readonly epsilon: Rational;
  readonly delta?: Rational;
  readonly response_share?: Rational;
  readonly of?: "randomized_response" | "sue";
  readonly instantaneous_epsilon?: Rational;
  /** How often each kind of product is drawn beside the others; 1 where it is not stated. */
  readonly weights?: { readonly [Kind in "means" | "squares" | "features" | "response"]?: number };
  /** How many products a report has; 1 where it is not stated. */
  readonly products?: 1 | 2 | 3 | 4;
}

interface Asked<Ask extends string, Name extends MechanismName> {
  readonly id: string;
  readonly ask: Ask;
  readonly text?: string;
  readonly mechanism: Stated<Name>;
  /** Where it stands in the document, such as "questions[0]". */
  readonly path: string;
}

export interface NumberQuestion extends Asked<"number", "laplace" | "gaussian"> {
  readonly bounds: Bounds;
  /** What the number counts, such as "hours". */
  readonly unit?: string;
  /** Which share of epsilon says whether there is a number: null is an answer too then. */
  readonly refusal?: { readonly share: Rational };
}

export interface ChoiceQuestion extends Asked<
    "choice",
    "randomized_response" | "oue" | "sue" | "subset_selection" | "olh" | "hadamard" | "memoized"
  > {
  /** Labels; or, for choices by count, the whole numbers below `length`, answered as numbers. */
  readonly choices: readonly (string | null)[] | { readonly length: number };
  /** Whether the labels are a scale, from its low end to its high one. */
  readonly ordered?: boolean;
  /** Whether null, "prefer not to say", is an answer too: the last of the choices then. */
  readonly refusal?: boolean;
}

export interface YesNoQuestion extends Asked<"yes_no", "randomized_response" | "memoized"> {
  readonly choices: readonly ["no", "yes"] | readonly ["no", "yes", null];
  readonly refusal?: boolean;
}

export interface RecordQuestion extends Asked<"record", "gaussian_statistics" | "gaussian_record" | "sampled_products"> {
  /** Yes/no and choice fields, and cuts, are for sampled products alone. */
  readonly features: readonly (NumberField | CutField | YesNoField | ChoiceField)[];
  /** Of all but sampled products. */
  readonly norm?: Rational;
  readonly response: NumberField | YesNoField;
}

export type Question = NumberQuestion | ChoiceQuestion | YesNoQuestion | RecordQuestion;

/** What a report says in clear. Numbers have bounds and step, choices have labels. */
export interface PublicField {
  readonly id: string;
  readonly text?: string;
  readonly choices?: readonly string[];
  readonly bounds?: Bounds;
  readonly step?: Rational;
  /** Where the invitation carries the value, so that it may be left out of the answers. */
  readonly source?: "invitation";
  /** What is sent for an answer. Throws LdpkitError "answer" for what is none of the field's values. */
  toSend(answer: string | number): string;
}

/** How reports leave so that nobody can join a person and a report. */
export interface Channel {
  /** A report leaves at a moment that is drawn from the window of so many hours after that in which it became ready. */
  readonly batches: { readonly hours: number };
  /** An issuer gives a blind token for an invitation, once; the collector takes one a report. */
  readonly tokens?: {
    /** Its base URL. */
    readonly issuer: string;
    /** Each with the public values that it stands for; in base64. */
    readonly keys: readonly { readonly key: string; readonly public?: { readonly [field: string]: string } }[];
  };
}

export interface Study {
  readonly format: "ldpkit.study/1";
  readonly id: string;
  readonly version: number;
  readonly title: string;
  readonly purpose?: string;
  /** Who asks, in the study's own language. */
  readonly owner?: string;
  /** An e-mail or https address of theirs. */
  readonly contact?: string;
  readonly ethics?: string;
  /** For how many days reports are kept: from `closes` on, else from the day each arrived. */
  readonly retention?: { readonly days: number };
  /** Days, YYYY-MM-DD. */
  readonly opens?: string;
  readonly closes?: string;
  /** Whether a report answers one question only, drawn whatever the answers are. */
  readonly sample_one_question?: boolean;
  readonly questions: readonly Question[];
  /** Which questions are shown together, by their ids, and in what order. */
  /** any_of: the title is the question, and its yes/no questions are boxes of which any may be ticked. */
  readonly sections?: readonly {
    readonly title: string;
    readonly questions: readonly string[];
    readonly any_of?: boolean;
  }[];
  /** Sent as they are: their values stand in Answers beside those to questions. */
  readonly public?: readonly PublicField[];
  readonly channel?: Channel;
  readonly document: unknown;
  /** The canonical JSON text, and the SHA-256 of its UTF-8 bytes in hexadecimal. */
  readonly canonical: string;
  readonly digest: string;
}

/** Parse and validate a study document, as text or bytes of UTF-8. Rejects with LdpkitError "study", or "module" where a part does not load. */
export function parseStudy(source: string | Uint8Array): Promise<Study>;

/** A finite number: what is missing, null or NaN is refused. */
export type NumberAnswer = number;
export type YesNoAnswer = boolean | "yes" | "no";
export type RecordAnswer = { readonly [field: string]: NumberAnswer | YesNoAnswer | string };
/** null is "prefer not to say": an answer to a question with `refusal` alone. */
export type Answer = NumberAnswer | YesNoAnswer | string | RecordAnswer | null;
/** By question, and by public field. */
export type Answers = { readonly [question: string]: Answer };

/**
 * size → that many bytes. Only tests pass one, which says so: what answers are protected with is
 * crypto.getRandomValues, and any other source is refused with LdpkitError "input".
 */
export type RandomSource = ((size: number) => Uint8Array) & { readonly forTests?: true };

export interface Mechanism {
  readonly name: MechanismName;
  /** Bytes, the same for every answer. */
  readonly payloadSize: number;
  /** The integers that decide the mechanism's law, such as levels or threshold. */
  readonly integers: { readonly [name: string]: bigint };
  /** One noisy payload. Throws LdpkitError "answer", before any noise is drawn, if the answer does not fit. */
  perturb(answer: Answer, random?: RandomSource): Uint8Array;
  /** The answer's place on the mechanism's grid. Throws LdpkitError "answer" if it does not fit. */
  quantise(answer: Answer): unknown;
  randomise(quantised: unknown, random: RandomSource): Uint8Array;
  /** Of memoized: `randomise` in two stages, a noisy answer to be kept and noise for each report. */
  permanent?(quantised: unknown, random: RandomSource): Uint8Array;
  instantaneous?(permanent: Uint8Array, random: RandomSource): Uint8Array;
}

/** Throws LdpkitError "study" where ε or δ is too small for the question. */
export function mechanismFor(question: Question): Mechanism;

/**
 * One report with a fresh id, kept nowhere: a Device is what makes it the only one. secret: 32 hexadecimal digits
 * that the id is a hash of; whoever presents them may have the report deleted. answered: the questions that it
 * answers. mechanisms: one for each question, `mechanismFor` if left out. Rejects with LdpkitError "input" for a
 * memoized question, whose permanent answer only a Device keeps, "study" for a report above 1,048,576 bytes.
 */
export function perturbAnswers(
  study: Study,
  answers: Answers,
  random?: RandomSource,
  mechanisms?: readonly Mechanism[],
): Promise<{ id: string; secret: string; body: string; answered: string[] }>;

/**
 * held: written, waits for consent. queued: may leave. uninvited: the collector takes it with an unused
 * invitation only. sent: the collector has it. refused: it will not take it; it may have it where the answer to an
 * earlier attempt was lost. withdrawn: its body is wiped and its
 * deletion is asked for until that is acknowledged.
 */
export type ReportState = "held" | "queued" | "uninvited" | "sent" | "refused" | "withdrawn";

export interface StoredReport {
  readonly id: string;
  /** What the id is made of, to be shown to nobody. */
  readonly secret: string;
  readonly study: string;
  readonly version: number;
  /** The study's. */
  readonly digest: string;
  /** The origin of the collector that the report was made for: the only one that it is sent to, unless it moved. */
  readonly origin: string;
  /** The base URL of that collector. */
  readonly collector: string;
  readonly state: ReportState;
  /** The bytes that leave, as text; "" once withdrawn. */
  readonly body: string;
  /** The study's last day, for which, and 30 days more, a report waits though the study was closed. */
  readonly closes?: string;
  /**
   * Why it was not settled at the last attempt; "" once it was: "unreachable", "problem STATUS NAME", "foreign STATUS"
   * (no answer of the collector), each perhaps behind "unserved ", if the study was not found, or behind "issuer ", if
   * its token was asked for. The sentences stand in collector/words, under "script.reason.".
   */
  readonly reason?: string;
  /**
   * Which collector serves the study that was answered, as its header LDPKit-Collector says: the only one whose word
   * counts. "" until it is asked, before which nothing is sent.
   */
  readonly publisher: string;
  /** What travels beside the body, "" for none and once it is not needed any more; with tokens to their issuer alone. */
  readonly invitation: string;
  /** The study's, where it has one: then a report waits for its token, if that has any, and for its moment. */
  readonly channel?: Channel;
  /**
   * What was drawn to ask for a token, to be shown to nobody, until there is one; and by which of the study's keys, from
   * 0: the issuer says whose stratum is which, so show the person theirs, which the collector sees beside the report.
   */
  readonly asked?: { readonly place: number };
  /** As the header Authorization has it, in base64url; "" once it is not needed any more. */
  readonly token?: string;
  /** When it leaves, in milliseconds since 1970; not before it is ready. */
  readonly due?: number;
}

/** What was told, in the order of first answers. limit: the budget. All epsilons in nats. */
export interface Told {
  readonly limit: number;
  readonly epsilon: number;
  readonly delta: number;
  readonly studies: readonly ToldStudy[];
}

/** A study of one collector: another collector's study of the same id is another study. */
export interface ToldStudy {
  readonly study: string;
  /** In the study's own language. */
  readonly title: string;
  /** Who asked, "" if the study does not say. */
  readonly owner: string;
  /** The collector's origin. */
  readonly origin: string;
  /** YYYY-MM-DD, by this device's clock. */
  readonly days: readonly string[];
  /** The texts of what was answered, else the questions' ids. */
  readonly questions: readonly string[];
  readonly epsilon: number;
  readonly delta: number;
  /** Of the reports that are left; none where all are withdrawn and deleted. */
  readonly states: readonly ReportState[];
}

/** Makes a device's requests as `fetch` does; `oblivious` of "ldpkit/oblivious" makes one. */
export interface Transport {
  (url: string, options: RequestInit): Promise<Response>;
  /**
   * The URL of the relay that requests go through, if they do. A relay reaches one collector and takes requests up to
   * 256 KiB, so the device then refuses studies with an issuer of tokens, and reports above 258,048 bytes.
   */
  readonly relay?: string;
}

/** Methods reject with LdpkitError "ledger" when the storage cannot be used. */
export interface Device {
  /** The base URL of its collector, in the spelling that is compared. */
  readonly collector: string;
  readonly transport: Transport;
  /**
   * Perturb every answer once and write spend, permanent answers and report durably, in one transaction; the
   * report is held. invitation: what the operator of an invited study handed out.
   * Rejects with LdpkitError "input", "answer", "closed", "answered", "budget" or "study"; then nothing is written.
   * "study" is the error for a report above 1,048,576 bytes, and for what the transport's relay does not take.
   * "answered" is also the error for a version below one that was answered, for another document of that version, and
   * for a public field with the id of a question that this study asked before. Another collector's study of the same id
   * is another study.
   */
  answer(study: Study, answers: Answers, invitation?: string): Promise<StoredReport>;
  /**
   * Whether `answer` would refuse the study as answered, and the latest report for it until that is deleted. A
   * study of memoized questions only can be answered once in each version.
   */
  status(study: Study): Promise<{ answered: boolean; report: StoredReport | undefined }>;
  /**
   * Draw the question that a study which asks one asks this device, once for each document and durably: its place, -1 for
   * a study that asks all. `answer` then takes the answer to that question alone, beside the public values.
   */
  draw(study: Study): Promise<number>;
  /** What is left of the budget, in nats. */
  epsilonLeft(): Promise<number>;
  /** What this device has told so far, to whom, when and what it cost: of its own ledger, which leaves it never. */
  told(): Promise<Told>;
  /**
   * The person agrees that the held report of answers to exactly this study leaves; of another version's, which `status`
   * gives too, give that report. Returns it, nothing where none is left. Rejects with "module" where a part does not load.
   */
  consent(study: Pick<Study, "digest"> | StoredReport): Promise<StoredReport | undefined>;
  /** Give what waits to be sent to a study another invitation. Rejects as `withdraw` does. */
  invite(studyId: string, invitation: string): Promise<void>;
  /**
   * Wipe reports and permanent answers of a study; those reports that may have left are to be deleted: how
   * many these are. What left in a batch is deleted in one. What was given to another origin stays. Spends stay, and no question is asked again. Rejects with
   * LdpkitError "input" for a study of this collector that this device never answered: a 0 would say that all is deleted; with "module" where a part does not load, and
   * nothing is wiped yet.
   */
  withdraw(studyId: string): Promise<number>;
  /**
   * Send what is queued for this device's collector and ask for deletions there, each up to `attempts` times (5)
   * with full jitter. Of a study with a channel ask for tokens first, and send in a later flush what is due by then: call
   * it again, best at every start and after `due`. Rejects with LdpkitError "module" where something waits and the part that sends does not
   * load: call again. now: ask for deletions at once that else leave in a batch; who watches may then tell whose they were.
   */
  flush(options?: { attempts?: number; now?: boolean }): Promise<void>;
}

/** What a device remembers; which of it stands where is ldpkit's own. */
export interface Memory {
  readonly spent: unknown[];
  readonly permanent: unknown[];
  reports: StoredReport[];
}

/**
 * Where a device keeps what it remembers, durably: IndexedDB where none is given, or one of "ldpkit/ledgers/node",
 * "ldpkit/ledgers/expo" and "ldpkit/ledgers/memory". Its functions reject with LdpkitError "ledger" where the storage
 * cannot be used.
 */
export interface Ledger {
  /** What `work` returns of the memory. */
  read<Result>(work: (memory: Memory) => Result): Promise<Result>;
  /**
   * The same, once what `work` changed is on disk, in a transaction of its own. Where `work` or the storage throws,
   * nothing is changed.
   */
  write<Result>(work: (memory: Memory) => Result): Promise<Result>;
  /** Runs `work` while nobody else who has this ledger is in here; navigator.locks does that where it is missing. */
  alone?<Result>(work: () => Promise<Result>): Promise<Result>;
}

export interface DeviceOptions {
  /** The budget over all studies of this origin, a decimal in a string. */
  maxEpsilon: string;
  /** The same of delta, "0.0001" if left out: a loose delta lets answers through at any epsilon. */
  maxDelta?: string;
  /** The most epsilon that one collector may learn from its studies, a decimal in a string; `maxEpsilon` if left out. */
  maxEpsilonPerCollector?: string;
  /**
   * Base URL of the collector; the page's own origin if left out: https, or http on this machine. Its origin (scheme,
   * host, port) says whose a study is; the path does not count. Rejects with LdpkitError "input" for another address.
   */
  collector?: string;
  /**
   * Earlier origins of the same collector, which has moved: what was answered there counts as answered here. Rejects
   * with LdpkitError "input" as `collector` does.
   */
  formerly?: readonly string[];
  /** Name of the IndexedDB database, "ldpkit" if left out. */
  name?: string;
  /** In place of that database. */
  ledger?: Ledger | Promise<Ledger>;
  /** Makes every request of the device; the platform's `fetch` if left out. */
  transport?: Transport | Promise<Transport>;
  random?: RandomSource;
}

/** Open this origin's device. Rejects with LdpkitError "ledger" or "input". */
export function openDevice(options: DeviceOptions): Promise<Device>;
