// Lines and their units: how fast and how reliably each answers, what is wrong and what to do.
import { Refused, call } from "./api.js";
import { byId, fromTemplate, keyed, make, makeStep, setClass, setText } from "./dom.js";
import { resumeFrames, setUpTools, updateTools } from "./line_tools.js";
import { onEnter, permit } from "./views.js";

const LOOK = 2000;
const FAILURES = { silent: "without an answer", garbled: "not understood", echoed: "sent back", late: "too late" };
let problems = [];
let user = {};
let timer = 0;
let sought = new URLSearchParams(); // what the address asks for, until it is shown

export function setUpLines() {
  onEnter("lines", () => {
    sought = new URLSearchParams(location.search);
    look();
  });
}

// Go to the line or the device that the address names, once it is there.
function seek() {
  const [line, device] = [sought.get("line"), Number(sought.get("device"))];
  const nodes = [...byId("lines").children];
  const rows = nodes.flatMap((node) => [...node.querySelectorAll(".unit")]);
  const found = line ? nodes.find((node) => node.line === line) : rows.find((row) => row.devices.includes(device));
  if (!found) return;
  sought = new URLSearchParams();
  found.tabIndex = -1;
  found.scrollIntoView({ block: "center" });
  found.focus({ preventScroll: true });
}

export function showLines(snapshot) {
  ({ problems, user } = snapshot);
  permit("lines", user.view_devices);
}

// Asked for only while somebody looks.
async function look() {
  clearTimeout(timer);
  if (byId("view-lines").hidden || byId("board").hidden) return;
  if (document.visibilityState === "visible") {
    try {
      render(await call("GET", "/status/line/list"));
      seek();
      setText(byId("lines-fault"), "");
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setText(byId("lines-fault"), error.message);
    }
  }
  timer = setTimeout(look, LOOK);
}

function render({ lines, bounds }) {
  byId("no-lines").hidden = lines.length !== 0;
  keyed(byId("lines"), lines, {
    key: (line) => line.name,
    create: (line) => {
      const node = fromTemplate("line-card");
      setUpTools(node, line.name);
      return node;
    },
    update: (node, line) => update(node, line, bounds),
  });
}

function update(node, line, bounds) {
  const names = line.units.flatMap((unit) => unit.devices);
  const own = problems.filter((one) => (one.part === "line" && one.id === line.name) || (one.part === "device" && names.includes(one.name)));
  const failing = line.units.filter((unit) => unit.fault || unit.unsecured || unit.tampered).length;
  const [word, kind] = line.down ? ["Down", "bad"] : own.length || failing ? ["Look here", "warn"] : ["Good", "good"];
  node.line = line.name;
  setText(node.querySelector("h3"), line.name);
  setText(node.querySelector(".pill"), word);
  setClass(node.querySelector(".pill"), `pill ${kind}`);
  setText(node.querySelector(".verdict"), line.verdict);
  keyed(node.querySelector(".steps"), own.flatMap((one) => one.steps), { key: (step) => step, create: makeStep, update: () => {} });
  keyed(node.querySelector(".units"), line.units, {
    key: (unit) => unit.unit,
    create: () => fromTemplate("unit-row"),
    update: (row, unit) => updateUnit(row, unit, bounds),
  });
  node.querySelector(".frames-part").hidden = !line.framed;
  updateTools(node, line, user);
  resumeFrames(node, line.name);
}

function updateUnit(row, unit, bounds) {
  row.devices = unit.device_ids;
  setText(row.querySelector("strong"), unit.devices.join(", ") || `Unit ${unit.unit}`);
  setText(row.querySelector(".unit-number"), `unit ${unit.unit}`);
  const answered = unit.reply_times.reduce((sum, count) => sum + count, 0);
  const failed = Object.entries(unit.failed).filter(([, count]) => count > 0);
  const bad = failed.map(([how, count]) => `${count.toLocaleString("en")} ${FAILURES[how] ?? how}`).join(", ");
  const median = unit.reply === null ? "no answer yet" : `${unit.reply} ms of ${unit.allowed} ms allowed`;
  setText(row.querySelector(".unit-text"), `${median} · ${answered.toLocaleString("en")} answered${bad ? ` · ${bad}` : ""} in the last hour`);
  setText(row.querySelector(".unit-verdict"), unit.verdict);
  const channel = row.querySelector(".unit-channel");
  channel.hidden = unit.unsecured === null;
  setText(channel.firstElementChild, unit.unsecured ? "Secure channel off" : "Secure channel on");
  setClass(channel.firstElementChild, `pill ${unit.unsecured ? "bad" : "good"}`);
  channel.lastElementChild.hidden = !unit.tampered;
  setClass(row, `unit ${unit.failing || unit.unsecured || unit.tampered ? "failing" : ""}`);
  const most = Math.max(1, ...unit.reply_times);
  const upTo = (place) => (place < bounds.length ? `up to ${bounds[place]} ms` : `over ${bounds.at(-1)} ms`);
  const chart = row.querySelector(".histogram");
  keyed(chart, unit.reply_times.map((count, place) => ({ count, place })), {
    key: ({ place }) => place,
    create: () => make("i"),
    update: (bar, { count, place }) => {
      bar.style.setProperty("--share", String(count === 0 ? 0 : Math.max(0.06, count / most)));
      bar.title = `${upTo(place)}: ${count.toLocaleString("en")}`;
    },
  });
  setText(row.querySelector(".fastest"), `${bounds[0]} ms`);
  setText(row.querySelector(".slowest"), `over ${bounds.at(-1)} ms`);
  const words = unit.reply_times.map((count, place) => (count ? `${upTo(place)}: ${count}` : "")).filter(Boolean);
  chart.setAttribute("aria-label", `Reply times of the last hour. ${words.join("; ") || "none yet"}`);
}
