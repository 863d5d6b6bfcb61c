/** Has the browser send what waits once it is online again, though the page is closed by then; where it can do that. */

const TAG = "ldpkit";
// A page may make a policy of a name once.
const policy = self.trustedTypes?.createPolicy(TAG, { createScriptURL: (url) => url });

/** Ask for it; `address` is the worker's. Throws what the browser throws where it is not allowed to. */
export async function sendLater(address) {
  if (!("SyncManager" in self)) return;
  const registration = await navigator.serviceWorker.register(policy?.createScriptURL(address) ?? address, { type: "module" });
  await activated(registration);
  await registration.sync.register(TAG);
}

/** Waits for a worker that runs. */
const activated = ({ active, installing, waiting }) =>
  new Promise((resolve) => {
    const worker = active ?? installing ?? waiting;
    const look = () => worker.state === "activated" && resolve();
    worker.addEventListener("statechange", look);
    look();
  });
