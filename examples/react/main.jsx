// Bundle it: npx esbuild main.jsx --bundle --splitting --format=esm --jsx=automatic --outdir=built
import { createRoot } from "react-dom/client";
import { StudyQuestion } from "./StudyQuestion.jsx";

const { collector, study, maxEpsilon } = document.body.dataset;
const thank = () => document.body.classList.add("done");
createRoot(document.getElementById("app")).render(
  <StudyQuestion collector={collector} study={study} maxEpsilon={maxEpsilon} onDone={thank} />,
);
