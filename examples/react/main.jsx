// Bundle it: npx esbuild main.jsx --bundle --splitting --format=esm --jsx=automatic --outdir=built
import { LdpStudy } from "ldpkit/react";
import { createRoot } from "react-dom/client";

const { collector, study, maxEpsilon } = document.body.dataset;
const thank = () => document.body.classList.add("done");
createRoot(document.getElementById("app")).render(
  <LdpStudy collector={collector} study={study} maxEpsilon={maxEpsilon} onDone={thank} />,
);
