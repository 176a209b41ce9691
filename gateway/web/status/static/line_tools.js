// What a technician asks of a line: its frames as they come, and a scan for units in its idle turns.
import { Refused, call, post } from "./api.js";
import { keyed, make, setClass, setText } from "./dom.js";
import { clock } from "./time.js";
import { because, n, recognised, t } from "./words.js";

const LOOK = 1000;
const KEPT = 100;
const followed = new Map(); // by the name of a line: its last frames, and the number of the newest

export function setUpTools(node, name) {
  node.querySelector(".frames-part").addEventListener("toggle", () => follow(node, name));
  node.querySelector(".scan").addEventListener("submit", (event) => {
    event.preventDefault();
    const [first, last] = [...event.target.querySelectorAll("input")].map((field) => Number(field.value));
    ask(node, "/status/line/scan", { line: name, first, last });
  });
  node.querySelector(".scan-stop").addEventListener("click", () => ask(node, "/status/line/scan/stop", { line: name }));
}

async function ask(node, path, body) {
  try {
    showScan(node, (await post(path, body)).scan);
    setText(node.querySelector(".scan-fault"), "");
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    setText(node.querySelector(".scan-fault"), error.message);
  }
}

export function updateTools(node, line, user) {
  node.querySelector(".scan-part").hidden = !line.scannable || !user.control_devices;
  showScan(node, line.scan);
}

function showScan(node, scan) {
  const working = scan !== null && !scan.ended;
  const done = scan === null ? 0 : scan.asked + scan.unasked.length;
  node.querySelector(".scan button[type=submit]").disabled = working;
  node.querySelector(".scan-stop").hidden = !working;
  const bar = node.querySelector("progress");
  bar.hidden = !working;
  bar.max = scan?.total ?? 1;
  bar.value = done;
  setText(node.querySelector(".scan-state"), scan === null ? "" : stateOf(scan, done));
  keyed(node.querySelector(".scan-units"), scan?.units ?? [], {
    key: (unit) => unit.unit,
    create: () => make("li"),
    update: (row, unit) => {
      const answer = recognised(unit.answer);
      const told = unit.is_clear ? answer : t("not understood (two of one address?): {answer}", { answer });
      const places = { unit: String(unit.unit), devices: unit.devices.join(", ") || t("new") };
      setText(row, because(t("Unit {unit}, {devices}", places), [recognised(unit.identity), told].filter(Boolean).join(" · ")));
      setClass(row, unit.devices.length ? "" : "new-unit");
    },
  });
}

function stateOf({ total, ended, unasked }, done) {
  const places = { count: done, all: total, why: recognised(ended ?? "") };
  if (!ended) return t("{count} of {all} addresses asked.", places);
  const rest = unasked.length ? n("{count} had no idle turn.", "{count} had no idle turn.", unasked.length) : "";
  return `${t("{count} of {all}: {why}.", places)} ${rest}`.trim();
}

// Asked for only while the frames are open and somebody looks.
async function follow(node, name) {
  const part = node.querySelector(".frames-part");
  const own = followed.get(name) ?? { frames: [], last: 0, asking: false };
  followed.set(name, own);
  if (own.asking) return;
  own.asking = true;
  try {
    while (part.open && node.isConnected && node.offsetParent !== null) {
      if (document.visibilityState === "visible") await look(node, name, own);
      await new Promise((resolve) => setTimeout(resolve, LOOK));
    }
  } finally {
    own.asking = false;
  }
}

export function resumeFrames(node, name) {
  if (node.querySelector(".frames-part").open) follow(node, name);
}

async function look(node, name, own) {
  try {
    const { frames } = await call("GET", `/status/line/frames?${new URLSearchParams({ line: name, after: own.last })}`);
    if (frames.length && frames[0].number < own.last) own.frames = [];
    own.frames = [...own.frames, ...frames].slice(-KEPT);
    own.last = own.frames.at(-1)?.number ?? 0;
    setText(node.querySelector(".frames-fault"), "");
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    setText(node.querySelector(".frames-fault"), error.message);
  }
  keyed(node.querySelector(".frames"), [...own.frames].reverse(), {
    key: (frame) => frame.number,
    create: frameRow,
    update: () => {},
  });
}

function frameRow(frame) {
  const row = make("li", frame.good ? "" : "bad-frame");
  const whom = frame.unit === null ? "" : frame.devices.join(", ") || t("unit {unit}", { unit: String(frame.unit) });
  const purpose = frame.purpose === "poll" ? "" : ` [${recognised(frame.purpose)}]`;
  const took = frame.good ? ` · ${t("{time} ms", { time: frame.milliseconds })}` : "";
  row.append(make("span", "dim", `${clock(new Date(frame.at / 1000))} `), make("strong", "", `${whom}${purpose} `), `${recognised(frame.asked)}${frame.asked ? " → " : ""}${recognised(frame.told)}${took}`);
  row.title = [frame.sent && t("bytes sent: {bytes}", { bytes: frame.sent }), frame.received && t("bytes received: {bytes}", { bytes: frame.received })].filter(Boolean).join("\n");
  return row;
}
