// The end of the gateway's log, the newest line first.
import { Refused, call } from "./api.js";
import { byId, keyed, make, setText } from "./dom.js";
import { clock } from "./time.js";

const LOOK = 5000;
const BAD = new Set(["warning", "error", "critical"]);
let asking = false;

export function setUpLog() {
  byId("log-part").addEventListener("toggle", follow);
}

export function showLog({ user }) {
  byId("log-part").hidden = !(user.edit_settings && user.view_events && user.view_devices);
}

// Asked for only while it is open and somebody looks.
async function follow() {
  const part = byId("log-part");
  if (asking) return;
  asking = true;
  try {
    while (part.open && part.offsetParent !== null) {
      if (document.visibilityState === "visible") await look();
      await new Promise((resolve) => setTimeout(resolve, LOOK));
    }
  } finally {
    asking = false;
    if (part.offsetParent === null) part.open = false;
  }
}

async function look() {
  try {
    const { lines } = await call("GET", "/status/log");
    setText(byId("log-fault"), "");
    const seen = new Map(); // equal lines are told apart by how often they came
    const rows = lines.map((line) => {
      seen.set(line, (seen.get(line) ?? 0) + 1);
      return { key: `${line}#${seen.get(line)}`, line };
    });
    keyed(byId("log"), rows.reverse(), { key: ({ key }) => key, create: ({ line }) => row(line), update: () => {} });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    setText(byId("log-fault"), error.message);
  }
}

function row(line) {
  const { timestamp, level = "", event = line, logger: _, ...more } = parsed(line);
  const node = make("li", BAD.has(level) ? "bad-frame" : "");
  const facts = Object.entries(more).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  node.append(
    Object.assign(make("span", "dim"), { textContent: timestamp ? `${clock(timestamp)} ` : "" }),
    Object.assign(make("strong"), { textContent: `${event} ` }),
    facts.join(" "),
  );
  return node;
}

function parsed(line) {
  try {
    return Object(JSON.parse(line));
  } catch {
    return {}; // a line for people, as in a terminal
  }
}
