// Lines and their units: how fast and how reliably each answers, what is wrong and what to do.
import { Refused, call } from "./api.js";
import { byId, fromTemplate, keyed, make, makeStep, setClass, setText } from "./dom.js";
import { resumeFrames, setUpTools, updateTools } from "./line_tools.js";
import { onEnter, permit } from "./views.js";
import { n, say, spoken, t } from "./words.js";

const LOOK = 2000;
const FAILURES = {
  silent: (count) => n("{count} without an answer", "{count} without an answer", count), garbled: (count) => n("{count} not understood", "{count} not understood", count),
  echoed: (count) => n("{count} sent back", "{count} sent back", count), late: (count) => n("{count} too late", "{count} too late", count),
};
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
  const [word, kind] = line.down ? [t("Down"), "bad"] : own.length || failing ? [t("Look here"), "warn"] : [t("Good"), "good"];
  node.line = line.name;
  setText(node.querySelector("h3"), line.name);
  setText(node.querySelector(".pill"), word);
  setClass(node.querySelector(".pill"), `pill ${kind}`);
  setText(node.querySelector(".verdict"), spoken(line, "verdict"));
  keyed(node.querySelector(".steps"), own.flatMap((one) => one.said.steps.map(say)), { key: (step) => step, create: makeStep, update: () => {} });
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
  setText(row.querySelector("strong"), unit.devices.join(", ") || t("Unit {unit}", { unit: String(unit.unit) }));
  setText(row.querySelector(".unit-number"), t("unit {unit}", { unit: String(unit.unit) }));
  const answered = unit.reply_times.reduce((sum, count) => sum + count, 0);
  const failed = Object.entries(unit.failed).filter(([, count]) => count > 0);
  const bad = failed.map(([how, count]) => FAILURES[how](count));
  const median = unit.reply === null ? t("no answer yet") : t("{time} ms of {allowed} ms allowed", { time: unit.reply, allowed: unit.allowed });
  const told = [median, t("{answers} in the last hour", { answers: [n("{count} answered", "{count} answered", answered), ...bad].join(" · ") })];
  setText(row.querySelector(".unit-text"), told.join(" · "));
  setText(row.querySelector(".unit-verdict"), spoken(unit, "verdict"));
  const channel = row.querySelector(".unit-channel");
  channel.hidden = unit.unsecured === null;
  setText(channel.firstElementChild, unit.unsecured ? t("Secure channel off") : t("Secure channel on"));
  setClass(channel.firstElementChild, `pill ${unit.unsecured ? "bad" : "good"}`);
  channel.lastElementChild.hidden = !unit.tampered;
  setClass(row, `unit ${unit.failing || unit.unsecured || unit.tampered ? "failing" : ""}`);
  const most = Math.max(1, ...unit.reply_times);
  const upTo = (place) => (place < bounds.length ? t("up to {time} ms", { time: bounds[place] }) : t("over {time} ms", { time: bounds.at(-1) }));
  const chart = row.querySelector(".histogram");
  keyed(chart, unit.reply_times.map((count, place) => ({ count, place })), {
    key: ({ place }) => place,
    create: () => make("i"),
    update: (bar, { count, place }) => {
      bar.style.setProperty("--share", String(count === 0 ? 0 : Math.max(0.06, count / most)));
      bar.title = t("{text}: {count}", { text: upTo(place), count });
    },
  });
  setText(row.querySelector(".fastest"), t("{time} ms", { time: bounds[0] }));
  setText(row.querySelector(".slowest"), t("over {time} ms", { time: bounds.at(-1) }));
  const words = unit.reply_times.map((count, place) => (count ? t("{text}: {count}", { text: upTo(place), count }) : "")).filter(Boolean);
  chart.setAttribute("aria-label", t("Reply times of the last hour. {times}", { times: words.join(" · ") || t("none yet") }));
}
