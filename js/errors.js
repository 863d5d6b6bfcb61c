/** Every error that ldpkit raises on purpose, as index.d.ts says. It never contains a true answer. */
export class LdpkitError extends Error {
  constructor(code, problem, field = "") {
    super(`${code}: ${field && field + ": "}${problem}`);
    this.code = code;
    this.field = field;
    this.problem = problem;
  }
}

/** Throw an LdpkitError. */
export function fail(code, problem, field) {
  throw new LdpkitError(code, problem, field);
}

/** Throw an error that is not ours as one of that code, without its words: they may repeat an answer. */
export const orElse = (code, problem) => (error) => {
  throw error instanceof LdpkitError ? error : new LdpkitError(code, problem ?? error?.name);
};

export const unloaded = orElse("module", "did not load: try again");
