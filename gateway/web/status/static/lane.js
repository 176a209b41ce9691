// One lane: its live picture over its buttons, its inputs with their age, what passed last, and a card's trial.
import { Refused, call, post } from "./api.js";
import { byId, keyed, make, makeNamed, setClass, setText } from "./dom.js";
import { showClips } from "./events.js";
import { ageOf, command, createLane, enrolLink, updateLane } from "./lanes.js";
import { LivePicture } from "./live_picture.js";
import { clock, lasting, seconds } from "./time.js";
import { onComeBack, onEnter } from "./views.js";
import { actor, because, recognised, spoken, t } from "./words.js";

const POINTS_EVERY = 2000;
const ROLES = {
  gate: t("Gate"), arming: t("Arming loop"), far: t("Arming loop, other side"), closing: t("Closing loop"), safety: t("Safety"),
  fire: t("Fire input"), key_switch: t("Key switch"), output: t("Output to the gate"),
};
const LAMPS = { on: "on", off: "off" };
const STATES = {
  on: t("on"), off: t("off"), unknown: t("unknown"), closed: t("closed"), opening: t("opening"), open: t("open"), closing: t("closing"), stopped: t("stopped"),
};
const TOLD = {
  open: (state) => t("told to open · {state}", { state }), close: (state) => t("told to close · {state}", { state }), stop: (state) => t("told to stop · {state}", { state }),
};
const COMMAND_STATES = {
  recorded: t("recorded"), sent: t("sent"), acknowledged: t("acknowledged"), done: t("done"), refused: t("refused"), unknown: t("unknown"),
};
let wanted = "";
let site = null;
let ages = []; // of the reports on the lane's points, in their order
let newest = -1; // of the lane's events, when its past was asked for

export function setUpLane() {
  onEnter("lanes", (id) => {
    wanted = id;
    newest = -1;
    byId("try-result").hidden = true;
    byId("lane-points").replaceChildren();
    ages = [];
    if (site) showLane(site);
    askPoints();
  });
  onComeBack("lanes", () => (newest = -1));
  byId("try-form").addEventListener("submit", (event) => {
    event.preventDefault();
    tryCard();
  });
  byId("try-open").addEventListener("click", () => command(byId("lane").firstElementChild, "open"));
  setInterval(askPoints, POINTS_EVERY);
}

export function showLane(snapshot) {
  site = snapshot;
  if (byId("view-lanes").hidden) return;
  const lanes = snapshot.lanes.filter((lane) => lane.lane_id === wanted);
  keyed(byId("lane"), lanes, {
    key: (lane) => lane.lane_id,
    create: (lane) => withStage(createLane(lane)),
    update: (node, lane) => {
      updateLane(node, lane, snapshot);
      stage(node, lane);
    },
  });
  showPoints();
  byId("no-lane").hidden = lanes.length > 0;
  byId("lane-parts").hidden = lanes.length === 0;
  byId("to-commissioning").hidden = lanes.length === 0 || !snapshot.user.control_devices || !snapshot.user.view_events;
  byId("to-commissioning").setAttribute("href", `/status/commissioning/${encodeURIComponent(wanted)}`);
  byId("try-section").hidden = !snapshot.user.control_devices || !snapshot.user.view_events;
  for (const part of ["try-direction"]) byId(part).hidden = lanes[0]?.direction !== "two-way";
  const last = Math.max(0, ...snapshot.events.filter((event) => event.lane_id === wanted).map((event) => event.id));
  if (lanes.length && snapshot.user.view_events && last > newest) {
    newest = last;
    askPast();
  }
}

export function ageLane() {
  for (const node of byId("lane").children) ageOf(node);
}

export function forgetLane() {
  site = null;
  newest = -1;
  for (const id of ["lane", "lane-points", "lane-passages", "lane-trace", "try-trace"]) byId(id).replaceChildren();
  for (const id of ["lane-read-text", "try-text"]) setText(byId(id), "");
  byId("try-form").reset();
}

function withStage(node) {
  node.classList.add("whole");
  node.chosen = null;
  return node;
}

// The picture of the lane's camera, live as long as the view can be seen; a choice where there are several.
function stage(node, lane) {
  node.classList.add("whole");
  const cameras = site.cameras.filter((camera) => lane.cameras.includes(camera.camera_id));
  const place = node.querySelector(".stage");
  const camera = cameras.find((one) => one.camera_id === node.chosen) ?? cameras[0];
  if (!camera) return place.replaceChildren();
  if (!node.live) {
    node.live = new LivePicture();
    node.live.wanted = true;
    place.append(node.live.node, make("div", "row wrap choices"));
  }
  node.live.show(camera);
  keyed(place.querySelector(".choices"), cameras.length > 1 ? cameras : [], {
    key: (one) => one.camera_id,
    create: (one) => {
      const button = makeNamed("button", "quiet", one.name);
      button.type = "button";
      button.addEventListener("click", () => {
        node.chosen = one.camera_id;
        stage(node, node.lane);
      });
      return button;
    },
    update: (button, one) => button.setAttribute("aria-pressed", String(one === camera)),
  });
}

const shown = () => !byId("view-lanes").hidden && !byId("board").hidden && document.visibilityState === "visible";

async function askPoints() {
  const lane = wanted;
  if (!site?.user.view_devices || !shown() || byId("lane-parts").hidden) return;
  const told = await call("GET", `/status/lane/points/${encodeURIComponent(lane)}`).catch(onlyRefused);
  if (!told || lane !== wanted || !site) return;
  ages = told.ages;
  showPoints();
}

// The lane's points as its card has them, from the same stream; how old each report is was asked for.
function showPoints() {
  const { command: output, points } = site.lanes.find((one) => one.lane_id === wanted) ?? { points: [] };
  const devices = new Map(site.devices.map((device) => [device.device_id, device.name]));
  const rows = points.map((point, place) => ({
    ...point, device: devices.get(point.device_id) ?? "", since: point.since && seconds(point.since), age: ages[place],
  }));
  keyed(byId("lane-points"), [...rows, ...(output ? [asPoint(output)] : [])], {
    key: (point) => `${point.role}/${point.device_id}/${point.name}`,
    create: () => {
      const row = make("li");
      row.append(make("span", "row"), make("span", "small dim"));
      row.firstChild.append(make("span"), make("span"));
      return row;
    },
    update: (row, point) => {
      const [lamp, name] = row.firstChild.children;
      setClass(lamp, `lamp ${LAMPS[point.state] ?? (point.state === "unknown" ? "unknown" : "good")}`);
      const places = { point: ROLES[point.role], state: STATES[point.state] ?? point.state, time: point.since === null ? "" : lasting(point.since) };
      setText(name, point.since === null ? t("{point}: {state}", places) : t("{point}: {state} for {time}", places));
      const place = point.name ? `${point.device}, ${recognised(point.name)}` : point.device;
      setText(row.lastChild, [place, reported(point)].filter(Boolean).join(" · "));
    },
  });
}

function reported({ age, told }) {
  if (age === undefined) return "";
  if (age === null) return t("never reported");
  return told ? t("told {time} ago", { time: lasting(age) }) : t("reported {time} ago", { time: lasting(age) });
}

// The gate's output as a point: what it was told last.
const asPoint = ({ action, state, by, requested_at: at }) => ({
  role: "output", device_id: "", name: "", device: t("by {who}", { who: actor(by) }), since: null,
  state: TOLD[action](COMMAND_STATES[state]), age: seconds(at), told: true,
});

async function askPast() {
  const lane = wanted;
  const told = await call("GET", `/status/lane/past/${encodeURIComponent(lane)}`).catch(onlyRefused);
  if (!told || lane !== wanted || !site) return;
  keyed(byId("lane-passages"), told.passages, {
    key: (event) => event.id,
    create: (event) => {
      const row = make("li", `passage s-${event.severity}`);
      const address = make("a", "small", clock(event.date_at));
      address.href = `/status/events/${event.id}`;
      row.append(make("div", "clips"), address, make("span", "small dim", spoken(event, "description")));
      return row;
    },
    update: (row, event) => showClips(row.firstChild, event, site),
  });
  byId("no-passages").hidden = told.passages.length > 0;
  byId("lane-passages").hidden = told.passages.length === 0;
  showRead(told.read);
}

function showRead(event) {
  byId("lane-read").hidden = !event;
  if (!event) return;
  const { read } = event;
  const refused = event.type === 103;
  const places = { time: clock(event.date_at), text: spoken(event, "description"), card: read?.credential, why: recognised(read?.why ?? "") };
  setText(byId("lane-read-text"), refused ? whyNotOpened(read, places) : `${places.time} · ${places.text}`);
  byId("lane-read-event").href = `/status/events/${event.id}`;
  enrolLink(byId("lane-enrol"), read, site.user);
  byId("lane-why").hidden = event.trace.length === 0;
  byId("lane-trace").replaceChildren(...event.trace.map((rule) => make("li", rule.failed ? "failed" : "", spoken(rule, "text"))));
}

function whyNotOpened(read, places) {
  if (!read?.why) return t("Not opened at {time}: {text}.", places);
  if (!read.credential) return t("Not opened at {time} for a card, because {why}.", places);
  if (read.form === "plate") return t("Not opened at {time} for plate {card}, because {why}.", places);
  return t("Not opened at {time} for card {card}, because {why}.", places);
}

async function tryCard() {
  const form = byId("try-form");
  const direction = byId("try-direction").hidden ? "" : form.direction.value;
  setText(byId("try-fault"), "");
  try {
    const { trial } = await post("/status/lane/try", { lane_id: wanted, card: form.card.value, direction });
    byId("try-result").hidden = false;
    setClass(byId("try-verdict"), `pill ${trial.opens ? "good" : "bad"}`);
    setText(byId("try-verdict"), trial.opens ? t("Test: would open") : t("Test: would not open"));
    setText(byId("try-text"), `${because(trialled(trial), recognised(trial.text))}. ${t("Nothing was opened.")}`);
    byId("try-trace").replaceChildren(...trial.trace.map(
      (rule) => make("li", rule.passed ? "" : "failed", ruleOf(rule)),
    ));
    byId("try-open").hidden = !trial.opens;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    byId("try-result").hidden = true;
    setText(byId("try-fault"), error.message);
  }
}

const trialled = ({ read, holder }) => (holder ? t("{card} of {who}", { card: recognised(read), who: holder }) : recognised(read));

function ruleOf({ rule, passed, seen }) {
  const places = { rule: recognised(rule), seen: recognised(seen) };
  return passed ? t("{rule}: passed ({seen})", places) : t("{rule}: FAILED ({seen})", places);
}

// A part that cannot be had now is left as it is: the next one comes soon, and the banner says when the line is cut.
function onlyRefused(error) {
  if (!(error instanceof Refused)) throw error;
  return null;
}
