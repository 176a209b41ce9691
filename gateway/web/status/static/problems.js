// Problems of the site, the worst first: what is wrong, what it means for drivers, and what to do.
import { byId, fromTemplate, keyed, make, setClass, setText } from "./dom.js";
import { clock, lasting, seconds } from "./time.js";

const MOST_SHOWN = 5;
const COLOURS = { alarm: "bad", warning: "warn", notice: "" };

export function setUpProblems() {
  byId("problems-more").addEventListener("click", () => {
    byId("problems").classList.toggle("all");
    label();
  });
}

export function showProblems({ problems }) {
  byId("problems-section").hidden = problems.length === 0;
  keyed(byId("problems"), problems, {
    key: (problem) => [problem.kind, problem.part, problem.id, problem.subject].join("/"),
    create: () => fromTemplate("problem-row"),
    update,
  });
  byId("problems-more").hidden = problems.length <= MOST_SHOWN;
  label();
  ageProblems();
}

export function ageProblems() {
  for (const node of byId("problems").children) {
    const since = node.querySelector(".problem-since");
    setText(since, `for ${lasting(seconds(since.dateTime))}`);
  }
}

function label() {
  const all = byId("problems").classList.contains("all");
  setText(byId("problems-more"), all ? "Show the worst alone" : `Show all ${byId("problems").children.length}`);
}

function update(node, problem) {
  setClass(node, `problem ${COLOURS[problem.severity] ?? ""}`);
  setText(node.querySelector(".problem-title"), problem.title);
  setText(node.querySelector(".problem-text"), problem.text);
  setText(node.querySelector(".problem-means"), problem.means);
  const since = node.querySelector(".problem-since");
  since.dateTime = problem.since;
  since.title = `since ${clock(problem.since)}`;
  keyed(node.querySelector(".problem-steps"), problem.steps, {
    key: (step) => step,
    create: (step) => make("li", "", step),
    update: () => {},
  });
}
