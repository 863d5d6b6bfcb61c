/** Has the browser send what waits once it is online again, though the page is closed by then; where it can do that. */

const TAG = "ldpkit";
// A page may make a policy of a name once.
const policy = self.trustedTypes?.createPolicy(TAG, { createScriptURL: (url) => url });

/**
 * Ask for it; `address` is the worker's. What leaves at a moment that is still to come is left to browsers that wake a
 * worker now and then, as they do for sites that are installed. Throws what the browser throws where it is not allowed
 * to.
 */
export async function sendLater(address, due) {
  if (due > Date.now()) return sendNowAndThen(address);
  if (!("SyncManager" in self)) return;
  await (await registered(address)).sync.register(TAG);
}

async function sendNowAndThen(address) {
  if (!("PeriodicSyncManager" in self)) return;
  const { state } = await navigator.permissions.query({ name: "periodic-background-sync" });
  const minInterval = 36e5;
  if (state === "granted") await (await registered(address)).periodicSync.register(TAG, { minInterval });
}

async function registered(address) {
  const registration = await navigator.serviceWorker.register(policy?.createScriptURL(address) ?? address, { type: "module" });
  await activated(registration);
  return registration;
}

/** Waits for a worker that runs. */
const activated = ({ active, installing, waiting }) =>
  new Promise((resolve) => {
    const worker = active ?? installing ?? waiting;
    const look = () => worker.state === "activated" && resolve();
    worker.addEventListener("statechange", look);
    look();
  });
