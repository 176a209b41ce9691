// Problems of the site, the worst first: what is wrong, what it means for drivers, and what to do.
import { Refused, post } from "./api.js";
import { toast } from "./dialogs.js";
import { byId, fromTemplate, keyed, makeStep, setClass, setText } from "./dom.js";
import { clock, lasting, seconds } from "./time.js";
import { actor, n, recognised, say, spoken, t } from "./words.js";

const MOST_SHOWN = 5;
const COLOURS = { alarm: "bad", warning: "warn", notice: "" };

export function setUpProblems() {
  byId("problems-more").addEventListener("click", () => {
    byId("problems").classList.toggle("all");
    label();
  });
}

export function showProblems({ problems, user }) {
  byId("problems-section").hidden = problems.length === 0;
  keyed(byId("problems"), problems, {
    key: (problem) => [problem.kind, problem.part, problem.id, problem.subject].join("/"),
    create,
    update: (node, problem) => update(node, problem, user),
  });
  byId("problems-more").hidden = problems.length <= MOST_SHOWN;
  label();
  ageProblems();
}

export function ageProblems() {
  for (const node of byId("problems").children) {
    const since = node.querySelector(".problem-since");
    setText(since, t("(for {time})", { time: lasting(seconds(since.dateTime)) }));
  }
}

function label() {
  const all = byId("problems").classList.contains("all");
  setText(byId("problems-more"), all ? t("Show the worst alone") : n("Show all {count}", "Show all {count}", byId("problems").children.length));
}

function create() {
  const node = fromTemplate("problem-row");
  node.querySelector(".act").addEventListener("click", () => act(node.problem.action));
  node.querySelector(".know").addEventListener("click", () => acknowledge(node.problem, 0));
  node.querySelector(".silence").addEventListener("click", () => acknowledge(node.problem, 8));
  return node;
}

async function act({ post: operation }) {
  try {
    await post(operation, {});
    toast(t("Under way."));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  }
}

async function acknowledge({ kind, part, id, subject }, silent_hours) {
  try {
    await post("/status/problem/acknowledge", { kind, part, id, subject, silent_hours });
    toast(t("Recorded with your name."));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  }
}

function knownBy({ acknowledged_by: who, acknowledged_at: since, silent_until: silent }) {
  const places = { who: actor(who), time: clock(since), end: silent ? clock(silent) : "" };
  return silent ? t("{who} knows of it since {time}, silent until {end}", places) : t("{who} knows of it since {time}", places);
}

function update(node, problem, user) {
  node.problem = problem;
  const known = problem.acknowledged_by !== "";
  setClass(node, `problem ${COLOURS[problem.severity] ?? ""}${known ? " known" : ""}`);
  setText(node.querySelector(".known-by"), known ? knownBy(problem) : "");
  node.querySelector(".know").hidden = known || !user.control_devices;
  node.querySelector(".silence").hidden = Boolean(problem.silent_until) || !user.control_devices;
  const go = node.querySelector(".go");
  const button = node.querySelector(".act");
  go.hidden = !problem.action?.show;
  button.hidden = !problem.action?.post || !user.edit_settings;
  if (!go.hidden) go.href = problem.action.show;
  for (const way of [go, button]) setText(way, recognised(problem.action?.label ?? ""));
  setText(node.querySelector(".problem-title"), spoken(problem, "title"));
  const name = node.querySelector(".problem-name");
  name.hidden = problem.id === "" || problem.said.names_part; // of no part, or named already
  setText(name.lastElementChild, problem.name);
  setText(node.querySelector(".problem-text"), spoken(problem, "text"));
  setText(node.querySelector(".problem-means"), spoken(problem, "means"));
  const since = node.querySelector(".problem-since");
  since.dateTime = problem.since;
  since.title = t("since {time}", { time: clock(problem.since) });
  keyed(node.querySelector(".problem-steps"), problem.said.steps.map(say), {
    key: (step) => step,
    create: makeStep,
    update: () => {},
  });
}
