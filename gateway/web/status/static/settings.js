// Settings: the site file with its faults, its common parts as forms, and a change that is on trial until it is confirmed.
import { showAccounts } from "./settings_accounts.js";
import { Refused, call, post } from "./api.js";
import { toast } from "./dialogs.js";
import { byId, keyed, make, setText } from "./dom.js";
import { collected, fill } from "./settings_forms.js";
import { onComeBack, onEnter, permit } from "./views.js";
import { actor, because, recognised, spoken, t } from "./words.js";

const LOOK = 1000;
let known = null; // the settings as they came last
let timer = 0;
let entered = false;

export function setUpSettings() {
  onEnter("settings", enter, leave);
  onComeBack("settings", () => {
    if (known === null) attempt(load);
  });
  byId("settings-forms").addEventListener("input", () => showFound(null));
  byId("settings-forms").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(dryRun);
  });
  byId("settings-apply").addEventListener("click", () => attempt(apply));
  byId("settings-keep").addEventListener("click", () => attempt(() => decide(true)));
  byId("settings-back").addEventListener("click", () => attempt(() => decide(false)));
  byId("settings-anew").addEventListener("click", () => attempt(load));
}

export function showSettings({ user }) {
  permit("settings", user.administrator);
}

export function forgetSettings() {
  leave();
  known = null;
  for (const id of ["settings-lines", "settings-faults", "settings-changes", "settings-parts", "accounts", "account-new"]) byId(id).replaceChildren();
}

function enter() {
  entered = true;
  attempt(load);
}

function leave() {
  entered = false;
  clearTimeout(timer);
}

async function attempt(act) {
  setText(byId("settings-fault"), "");
  try {
    await act();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    setText(byId("settings-fault"), error.message);
  }
}

async function load() {
  known = (await call("GET", "/status/settings/file")).settings;
  setText(byId("settings-path"), known.path);
  showFile(known);
  fill(byId("settings-parts"), known.parts);
  byId("settings-forms").hidden = known.parts === null;
  byId("settings-broken").hidden = known.parts !== null;
  showFound(null);
  showTrial(known.trial);
  await showAccounts();
}

function showFile({ lines, faults, notices }) {
  const faulty = new Map(faults.filter((fault) => fault.line).map((fault) => [fault.line, fault]));
  keyed(byId("settings-lines"), lines.map((text, index) => ({ text, line: index + 1 })), {
    key: ({ line }) => line,
    create: () => make("li"),
    update: (row, { text, line }) => {
      row.className = faulty.has(line) ? "faulty" : "";
      row.replaceChildren(make("code", "", text || " "));
      if (faulty.has(line)) row.append(told(faulty.get(line)));
    },
  });
  const rows = [...faults.map((fault) => (fault.line ? [make("span", "", t("Line {line}:", { line: String(fault.line) })), " ", told(fault)] : [told(fault)])), ...notices.map((text) => [recognised(text)])];
  byId("settings-faults").replaceChildren(...rows.map((parts) => {
    const row = make("li", "fault");
    row.append(...parts);
    return row;
  }));
}

// A fault in the reader's language: also at the lines of the file, which stay as they are, as keys do.
function told({ place, text, has_name: named }) {
  const node = make("span", "fault");
  node.translate = true;
  setText(node, place ? because(named ? recognised(place) : place, recognised(text)) : recognised(text)); // named: as "lane entry"
  return node;
}

const wanted = () => ({ digest: known.digest, edits: collected(byId("settings-parts"), known.parts) });

async function dryRun() {
  const found = (await post("/status/settings/try", wanted())).settings;
  showFound(found);
}

async function apply() {
  byId("settings-apply").disabled = true;
  setText(byId("settings-said"), t("Waiting until no vehicle is in the lanes…"));
  try {
    const done = (await post("/status/settings/apply", wanted())).settings;
    showTrial(done.trial);
  } finally {
    byId("settings-apply").disabled = false;
    setText(byId("settings-said"), "");
  }
}

function showFound(found) {
  const changes = found?.changes ?? [];
  keyed(byId("settings-changes"), changes, {
    key: ({ text }) => text,
    create: () => make("li"),
    update: (row, change) => setText(row, spoken(change, "text")),
  });
  const bad = [...(found?.faults ?? []), ...(found?.refused ?? [])];
  byId("settings-fault").replaceChildren(...bad.map((text) => make("span", "each", recognised(text))));
  byId("settings-apply").hidden = !changes.length || bad.length > 0;
  setText(byId("settings-said"), found && !changes.length && !bad.length ? t("Nothing is different from what is in force.") : "");
}

// While a change is on trial the page asks each second; the gateway counts, so that a page left open does no harm.
function showTrial(trial) {
  clearTimeout(timer);
  const box = byId("settings-trial");
  const appeared = box.hidden && trial !== null;
  box.hidden = trial === null;
  byId("settings-forms").inert = trial !== null;
  if (trial === null) return;
  const places = { who: trial.by ? actor(trial.by) : t("a command") };
  setText(byId("settings-trial-title"), t("On trial: {time} s", { time: Math.ceil(trial.seconds_left) }));
  setText(byId("settings-trial-text"), trial.asks_person
    ? t("Changed by {who}. It returns by itself unless somebody confirms it.", places)
    : t("Changed by {who}. It returns by itself unless all lanes work.", places));
  keyed(byId("settings-trial-changes"), trial.changes, {
    key: ({ text }) => text,
    create: () => make("li"),
    update: (row, change) => setText(row, spoken(change, "text")),
  });
  keyed(byId("settings-trial-unseen"), trial.unseen, {
    key: ({ device_id }) => device_id,
    create: () => make("li", "fault"),
    update: (row, reader) => setText(row, spoken(reader, "text")),
  });
  byId("settings-keep").hidden = !trial.asks_person;
  if (appeared) byId("settings-keep").focus();
  if (entered) timer = setTimeout(look, LOOK);
}

async function look() {
  try {
    const now = (await call("GET", "/status/settings/file")).settings;
    if (!entered) return;
    if (now.trial !== null) return showTrial(now.trial);
    toast(now.last.confirmed ? t("The change is kept.") : t("The change was taken back: {why}.", { why: recognised(now.last.why) }), !now.last.confirmed);
    for (const reader of now.last.unseen) toast(spoken(reader, "text"), true);
    await load();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (entered) timer = setTimeout(look, LOOK); // the interface may be starting anew for the change
  }
}

async function decide(keep) {
  await post("/status/settings/decide", { keep });
  await look();
}
