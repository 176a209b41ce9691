// What a technician asks of a line: its frames as they come, and a scan for units in its idle turns.
import { Refused, call, post } from "./api.js";
import { keyed, make, setClass, setText } from "./dom.js";
import { clock } from "./time.js";

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
  const unasked = scan?.unasked.length ? ` ${scan.unasked.length} had no idle turn.` : "";
  const state = scan === null ? "" : working ? `${done} of ${scan.total} addresses asked.` : `${done} of ${scan.total}: ${scan.ended}.${unasked}`;
  setText(node.querySelector(".scan-state"), state);
  keyed(node.querySelector(".scan-units"), scan?.units ?? [], {
    key: (unit) => unit.unit,
    create: () => make("li"),
    update: (row, unit) => {
      const whom = unit.devices.join(", ") || "new";
      const told = unit.is_clear ? unit.answer : `not understood (two of one address?): ${unit.answer}`;
      setText(row, `Unit ${unit.unit}, ${whom}: ${unit.identity ? `${unit.identity}; ` : ""}${told}`);
      setClass(row, unit.devices.length ? "" : "new-unit");
    },
  });
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
  const whom = frame.unit === null ? "" : frame.devices.join(", ") || `unit ${frame.unit}`;
  const purpose = frame.purpose === "poll" ? "" : ` [${frame.purpose}]`;
  const took = frame.good ? ` · ${frame.milliseconds} ms` : "";
  row.append(make("span", "dim", `${clock(new Date(frame.at / 1000))} `), make("strong", "", `${whom}${purpose} `), `${frame.asked}${frame.asked ? " → " : ""}${frame.told}${took}`);
  row.title = [frame.sent && `sent ${frame.sent}`, frame.received && `received ${frame.received}`].filter(Boolean).join("\n");
  return row;
}
