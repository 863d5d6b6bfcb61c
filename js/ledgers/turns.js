/** One at a time in this process. */

/** A function that runs work after what it was given before, however that ended, and returns what it returns. */
export function inTurn() {
  let last = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
}
