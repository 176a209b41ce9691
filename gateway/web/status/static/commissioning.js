// Commissioning of a lane: its steps tick themselves as the gateway sees them, a person judges the rest, and the record is signed.
import { Refused, call, post } from "./api.js";
import { asked, toast } from "./dialogs.js";
import { byId, keyed, make, setClass, setText } from "./dom.js";
import { ageOf, createLane, updateLane } from "./lanes.js";
import { clock } from "./time.js";
import { onEnter } from "./views.js";
import { because, n, spoken, t } from "./words.js";

const LOOK = 1500;
const OUTCOMES = { waiting: [t("To do"), ""], passed: [t("Passed"), "good"], failed: [t("Failed"), "bad"] };
let wanted = "";
let entered = false;
let site = null;

export function setUpCommissioning() {
  onEnter("commissioning", (id) => {
    wanted = id;
    entered = true;
    show(null);
    if (site) showCommissioning(site);
    look();
  }, () => { entered = false; });
  byId("commissioning-begin").addEventListener("click", () => act(() => post("/status/commissioning/begin", { lane_id: wanted })));
  byId("commissioning-finish").addEventListener("click", finish);
  byId("commissioning-print").addEventListener("click", () => print());
  setInterval(look, LOOK);
}

export function showCommissioning(snapshot) {
  site = snapshot;
  if (byId("view-commissioning").hidden) return;
  const lane = snapshot.lanes.find((one) => one.lane_id === wanted);
  byId("commissioning-title").hidden = !lane;
  setText(byId("commissioning-title"), t("Commissioning of {lane}", { lane: lane?.name ?? "" }));
  byId("commissioning-parts").hidden = !lane || !snapshot.user.control_devices || !snapshot.user.view_events;
  byId("no-commissioning").hidden = !byId("commissioning-parts").hidden;
  keyed(byId("commissioning-lane"), lane ? [lane] : [], {
    key: (one) => one.lane_id,
    create: createLane,
    update: (node, one) => updateLane(node, one, snapshot),
  });
}

export function ageCommissioning() {
  for (const node of byId("commissioning-lane").children) ageOf(node);
}

export function forgetCommissioning() {
  site = null;
  entered = false;
  byId("commissioning-lane").replaceChildren();
  show(null);
}

async function look() {
  if (!entered || !site || byId("commissioning-parts").hidden || document.visibilityState !== "visible") return;
  await act(() => call("GET", `/status/commissioning/lane/${encodeURIComponent(wanted)}`));
}

async function act(ask) {
  const lane = wanted;
  try {
    const { commissioning } = await ask();
    if (lane === wanted && entered) show(commissioning);
    setText(byId("commissioning-fault"), "");
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    setText(byId("commissioning-fault"), error.message);
  }
}

function show(state) {
  const begun = Boolean(state?.begun);
  setText(byId("commissioning-begin"), begun ? t("Begin anew") : t("Begin"));
  byId("commissioning-finish").hidden = !begun;
  byId("commissioning-finish").disabled = !state?.is_complete;
  setText(byId("commissioning-begun"), begun ? t("Begun by {who} at {time}.", { who: state.by, time: clock(state.begun) }) : "");
  steps(byId("commissioning-steps"), state?.steps ?? [], true);
  const records = state?.records ?? [];
  byId("commissioning-records-section").hidden = records.length === 0;
  keyed(byId("commissioning-records"), records, { key: ({ file }) => file, create: createRecord, update: () => {} });
}

function steps(list, all, judging) {
  keyed(list, all, {
    key: ({ name }) => name,
    create: (step) => {
      const row = make("li", "step");
      const head = make("p", "row between");
      head.append(make("strong", "", spoken(step, "title")), make("span", "pill"));
      row.append(head, make("p", "small", spoken(step, "todo")), make("p", "small dim seen"));
      if (judging) row.append(judges(step));
      return row;
    },
    update: (row, step) => {
      const { outcome, by } = step;
      const [word, colour] = OUTCOMES[outcome];
      setText(row.querySelector(".pill"), word);
      setClass(row.querySelector(".pill"), `pill ${colour}`);
      setText(row.querySelector(".seen"), [spoken(step, "seen"), by && t("judged by {who}", { who: by })].filter(Boolean).join(" · "));
    },
  });
}

function judges(step) {
  const row = make("p", "row wrap judges");
  for (const [word, passed] of [[t("Passed"), true], [t("Failed"), false]]) {
    const button = make("button", "quiet", word);
    button.type = "button";
    button.setAttribute("aria-label", because(word, spoken(step, "title")));
    button.addEventListener("click", () => asked({
      title: spoken(step, "title"),
      text: passed ? t("You have seen that it is right. What did you see?") : t("What was wrong?"),
      label: t("Note"),
      yes: word,
      field: { maxlength: "500" },
      act: async (note) => show((await post("/status/commissioning/judge", { lane_id: wanted, step: step.name, passed, note })).commissioning),
    }));
    row.append(button);
  }
  return row;
}

async function finish() {
  await asked({
    title: t("Sign and keep this record?"),
    text: t("It is signed with the site's key, kept on this box, and told in an event with your name."),
    label: t("Note on the whole"),
    yes: t("Sign"),
    field: { maxlength: "500" },
    act: async (note) => {
      show((await post("/status/commissioning/finish", { lane_id: wanted, note })).commissioning);
      toast(t("The record is signed and kept."));
    },
  });
}

function createRecord(record) {
  const node = make("li");
  const failed = record.steps.filter((step) => step.outcome === "failed").length;
  const details = make("details");
  const places = { time: clock(record.finished), who: record.finished_by, all: record.steps.length };
  const said = failed
    ? n("{time}: {count} of {all} steps failed; signed by {who}", "{time}: {count} of {all} steps failed; signed by {who}", failed, places)
    : t("{time}: all {all} steps passed; signed by {who}", places);
  details.append(make("summary", "", said));
  if (record.note) details.append(make("p", "small", record.note));
  const list = make("ol", "steps");
  steps(list, record.steps, false);
  const file = make("a", "button quiet", t("Signed file"));
  file.href = `/status/commissioning/file/${record.file}`;
  file.download = record.file;
  details.append(list, file);
  node.append(details);
  return node;
}
