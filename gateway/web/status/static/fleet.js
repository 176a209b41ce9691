// All gateways of the fleet, as their last heartbeats tell: the worst first. Asked for only while somebody looks.
import { Refused, call } from "./api.js";
import { byId, fromTemplate, keyed, make, setClass, setText } from "./dom.js";
import { clock, lasting, seconds } from "./time.js";
import { onComeBack, onEnter } from "./views.js";
import { n, recognised, t } from "./words.js";

const LOOK = 2000;
const MOST_PROBLEMS = 3;
const COLOURS = { alarm: "bad", warning: "warn" };
const STATES = [[t("Away"), "bad"], [t("Not ready"), "bad"], [t("Look here"), "warn"], [t("Good"), "good"]];
let gateways = new Map();
let mark = "";
let awaySeconds = 150;
let complete = false;
let timer = 0;

export function setUpFleet() {
  onEnter("fleet", look);
  onComeBack("fleet", look);
  byId("gateways-find").addEventListener("input", render);
}

export function showFleetLink({ fleet, user }) {
  byId("to-fleet").hidden = fleet === null || !user.view_devices;
}

export function forgetFleet() {
  gateways = new Map();
  mark = "";
  complete = false;
  byId("gateways").replaceChildren();
  byId("gateways-find").value = "";
}

async function look() {
  clearTimeout(timer);
  if (byId("view-fleet").hidden || byId("board").hidden) return;
  if (document.visibilityState === "visible") {
    try {
      take(await call("GET", `/status/fleet?after=${encodeURIComponent(mark)}`));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setText(byId("gateways-fault"), error.message);
    }
    render();
  }
  timer = setTimeout(look, LOOK);
}

function take(answer) {
  if (answer.anew) gateways = new Map();
  for (const one of answer.gateways) gateways.set(one.name, one);
  for (const name of answer.gone) gateways.delete(name);
  ({ mark, complete, away_seconds: awaySeconds } = answer);
  setText(byId("gateways-fault"), recognised(answer.fault));
}

// The place of its state in STATES.
function stateOf(one) {
  if (seconds(one.at) > awaySeconds) return 0;
  if (!one.ready) return 1;
  return one.problem_count ? 2 : 3;
}

function render() {
  const sought = byId("gateways-find").value.trim().toLowerCase();
  const all = [...gateways.values()].map((one) => ({ ...one, state: stateOf(one) }));
  const found = all.filter((one) => !sought || [one.name, one.site, one.headline, one.version].some((text) => text.toLowerCase().includes(sought)));
  setText(byId("gateways-count"), counted(all, found.length));
  byId("gateways-card").hidden = found.length === 0;
  keyed(byId("gateways"), found.toSorted((one, other) => one.state - other.state || (one.name < other.name ? -1 : 1)), {
    key: (one) => one.name,
    create: () => fromTemplate("gateway-row"),
    update,
  });
}

function counted(all, found) {
  if (!all.length) return complete ? t("No gateway has sent a heartbeat yet.") : "";
  const [away, unready] = [0, 1].map((state) => all.filter((one) => one.state === state).length);
  const parts = [
    n("{count} gateway", "{count} gateways", all.length),
    away ? n("{count} away", "{count} away", away) : "",
    unready ? n("{count} not ready", "{count} not ready", unready) : "",
    found < all.length ? n("{count} shown", "{count} shown", found) : "",
  ];
  return parts.filter(Boolean).join(" · ");
}

function update(row, one) {
  const [word, colour] = STATES[one.state];
  setText(row.querySelector(".gateway-name"), one.name);
  setText(row.querySelector(".gateway-site"), one.site);
  setText(row.querySelector(".pill"), word);
  setClass(row.querySelector(".pill"), `pill ${colour}`);
  setText(row.querySelector(".gateway-headline"), recognised(one.headline));
  const more = one.problem_count - Math.min(one.problems.length, MOST_PROBLEMS);
  const shown = one.problems.slice(0, MOST_PROBLEMS).map(({ severity, text }) => ({ text: recognised(text), colour: COLOURS[severity] ?? "" }));
  if (more > 0) shown.push({ text: n("{count} more", "{count} more", more), colour: "dim" });
  keyed(row.querySelector(".gateway-problems"), shown, {
    key: ({ text }) => text,
    create: () => make("li"),
    update: (line, problem) => {
      setText(line, problem.text);
      setClass(line, problem.colour);
    },
  });
  const waiting = n("{count} record waits for the fleet", "{count} records wait for the fleet", one.waiting);
  setText(row.querySelector(".gateway-waiting"), one.waiting ? waiting : "");
  setText(row.querySelector(".gateway-version"), one.version);
  setText(row.querySelector(".gateway-event"), one.last_event_at ? clock(one.last_event_at) : one.last_event ? t("Number {number}", { number: String(one.last_event) }) : t("None yet"));
  setText(row.querySelector(".gateway-heard"), t("heard {time} ago", { time: lasting(seconds(one.at)) }));
}
