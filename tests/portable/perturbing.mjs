/** perturbAnswers of the library with that INDEX_JS: one report with a fresh id, kept nowhere. */
export async function perturbingBy(port) {
  const { mechanismFor } = await import(port);
  const { systemRandom } = await import(new URL("randomness.js", port));
  const { drawIdentity, drawPayloads, reportOf } = await import(new URL("report.js", port));
  return async (study, answers, random = systemRandom, mechanisms = study.questions.map(mechanismFor)) => {
    const drawn = drawPayloads(study, answers, random, mechanisms);
    return reportOf(study, drawn, await drawIdentity(random));
  };
}
