// Cameras, devices, central and the gateway itself.
import { Refused, post } from "./api.js";
import { toast } from "./dialogs.js";
import { byId, fromTemplate, keyed, make, setClass, setText } from "./dom.js";
import { LivePicture } from "./live_picture.js";
import { clock, lasting, seconds } from "./time.js";
import { because, decimal, n, recognised, say, spoken, t } from "./words.js";

const CONDITIONS = {
  starting: [t("Starting"), "busy"], recording: [t("Recording"), "good"], unreachable: [t("Unreachable"), "bad"],
  refused: [t("Refused"), "bad"], unsupported: [t("No usable video"), "bad"], stalled: [t("Stalled"), "warn"], disk_failed: [t("Disk failed"), "bad"],
};
const POINT_STATES = { on: t("on"), off: t("off"), unknown: t("unknown") };
const pointState = (state) => POINT_STATES[state] ?? recognised(state);

let last = null;
let kept = null; // how many events there are, in words

export function tellKept(words) {
  kept = words;
  ageEquipment();
}

export function setUpEquipment() {
  byId("central-refresh").addEventListener("click", async () => {
    try {
      await post("/status/sync/refresh", {});
      toast(t("Everything is fetched again as soon as central answers."));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      toast(error.message, true);
    }
  });
}

// Whether the lanes have cameras beside them.
export function makeRoom({ user, cameras }) {
  byId("cameras-section").hidden = !user.view_cameras || cameras.length === 0;
}

export function showEquipment(snapshot) {
  last = snapshot;
  makeRoom(snapshot);
  byId("devices-section").hidden = !snapshot.user.view_devices || snapshot.devices.length === 0;
  keyed(byId("cameras"), snapshot.cameras, { key: (camera) => camera.camera_id, create: createCamera, update: updateCamera });
  keyed(byId("devices"), snapshot.devices, {
    key: (device) => device.device_id, create: () => fromTemplate("device-row"), update: updateDevice,
  });
  showCentral(snapshot);
  showFleet(snapshot);
  showBroker(snapshot);
  ageEquipment();
}

export function ageEquipment() {
  if (last === null) return;
  const { gateway } = last;
  const rows = [
    [t("Version"), gateway.version, ""],
    [t("Running"), lasting(seconds(gateway.started_at)), ""],
    [t("Clock"), gateway.clock_trusted ? t("synchronised") : t("not synchronised"), gateway.clock_trusted ? "" : "warn"],
    [t("Time zone"), gateway.timezone, ""],
    ...(last.storage && last.cameras.length ? [[t("Footage"), recognised(last.storage.text), last.storage.short ? "bad" : ""]] : []),
    [t("Database"), gateway.store_failing ? recognised(gateway.store_failing) : t("working"), gateway.store_failing ? "bad" : ""],
    ...(kept === null ? [] : [[t("Events"), kept, ""]]),
  ];
  byId("bundle").hidden = !(last.user.edit_settings && last.user.view_events && last.user.view_devices);
  const list = byId("facts");
  if (list.children.length !== rows.length * 2) list.replaceChildren(...rows.flatMap(() => [make("dt"), make("dd")]));
  rows.forEach(([name, value, kind], number) => {
    setText(list.children[number * 2], name);
    setText(list.children[number * 2 + 1], value);
    setClass(list.children[number * 2 + 1], kind);
  });
  for (const node of byId("devices").children) ageDevice(node);
}

function createCamera() {
  const node = fromTemplate("camera-card");
  node.live = new LivePicture();
  node.prepend(node.live.node);
  return node;
}

function updateCamera(node, camera) {
  const [word, kind] = CONDITIONS[camera.condition] || [camera.condition, ""];
  const pill = node.querySelector(".condition");
  setText(node.querySelector("h3"), camera.name);
  setText(pill, word);
  setClass(pill, `pill condition ${kind}`);
  const figures = [
    camera.condition === "recording" ? t("{rate} Mbit/s", { rate: decimal(camera.bits_per_second / 1e6, 2) }) : "",
    camera.last_segment_at ? t("footage until {time}", { time: clock(camera.last_segment_at) }) : t("no footage yet"),
    camera.reconnects ? n("{count} reconnect", "{count} reconnects", camera.reconnects) : "",
  ];
  setText(node.querySelector(".figures"), figures.filter(Boolean).join(" · "));
  setText(node.querySelector(".camera-text .fault"), recognised(camera.detail));
  node.live.show(camera);
}

function updateDevice(node, device) {
  node.device = device;
  const kind = device.online === null ? "unknown" : device.online ? "good" : "bad";
  setClass(node, `device ${device.online === false ? "lost" : ""}`);
  setClass(node.querySelector(".lamp"), `lamp ${kind}`);
  setText(node.querySelector("strong"), device.name);
  setText(node.querySelector(".kind"), `${recognised(device.kind)} · ${device.device_id}`);
  keyed(node.querySelector(".points"), device.points, {
    key: (point) => point.name,
    create: () => make("span"),
    update: (mark, point) => {
      setText(mark, recognised(point.name));
      setClass(mark, `point ${point.state}`);
      mark.title = because(recognised(point.name), pointState(point.state));
    },
  });
  ageDevice(node);
}

function ageDevice(node) {
  const { online, since, detail, refusals } = node.device;
  const time = online === null ? "" : lasting(seconds(since));
  const state = online === null ? t("No contact yet") : online ? t("Online for {time}", { time }) : t("Offline for {time}", { time });
  const refused = n("{count} message refused: {why}", "{count} messages refused, the last: {why}", refusals.count, { why: recognised(refusals.reason) });
  setText(node.querySelector(".state"), [detail ? because(state, recognised(detail)) : state, refusals.count ? refused : ""].filter(Boolean).join(" · "));
}

export const refusesUs = (central) => central.notices.some((notice) => notice.kind === "central_sign_in_refused");

function showCentral({ central, user }) {
  byId("central-section").hidden = central === null;
  if (central === null) return;
  const { reachable } = central;
  const refused = refusesUs(central);
  setClass(byId("central-lamp"), `lamp ${reachable === null ? "unknown" : reachable && !refused ? "good" : "bad"}`);
  const answers = refused ? t("Answers, but refuses the sign-in; the site works on its own") : t("Online");
  const word = reachable === null ? t("Not tried yet") : reachable ? answers : t("Offline; the site works on its own");
  setText(byId("central-state"), word);
  const signedIn = central.last_sign_in ? t("last signed in {time}", { time: clock(central.last_sign_in) }) : t("never signed in yet");
  const parts = [reachable === null ? "" : t("since {time}", { time: clock(central.since) }), recognised(central.error), signedIn];
  setText(byId("central-detail"), parts.filter(Boolean).join(" · "));
  const fetched = central.pulled_at ? t("{records}, fetched {time}", { records: recognised(central.pulled), time: clock(central.pulled_at) }) : t("Nothing fetched yet");
  setText(byId("central-fetched"), central.progress ? t("Fetching {records} …", { records: recognised(central.progress) }) : fetched);
  const notices = central.notices.map(({ text }, place) => say(central.said?.notices?.[place]?.text ?? text));
  keyed(byId("central-notices"), notices, {
    key: (notice) => notice,
    create: (notice) => make("li", "", notice),
    update: () => {},
  });
  byId("central-notices").hidden = central.notices.length === 0;
  const refresh = byId("central-refresh");
  refresh.hidden = !user.edit_settings;
  refresh.disabled = central.refreshing;
  setText(refresh, central.refreshing ? t("Fetching everything again …") : t("Fetch everything again"));
}

function showFleet({ fleet }) {
  byId("fleet-section").hidden = fleet === null;
  if (fleet === null) return;
  const left = n("{count} record waits for the fleet", "{count} records wait for the fleet", fleet.waiting);
  showServer("fleet", fleet, t("as {name}", { name: fleet.name }), fleet.waiting ? left : t("Everything is with the fleet"));
}

function showBroker({ broker }) {
  byId("broker-section").hidden = broker === null;
  if (broker === null) return;
  const left = n("{count} event waits for the broker", "{count} events wait for the broker", broker.waiting);
  showServer("broker", broker, broker.broker, broker.waiting ? left : t("Everything is with the broker"));
}

// The line to a server: its state, since when, why, with whom, and what waits for it.
function showServer(id, server, name, sent) {
  const { state, since } = server;
  const [word, lamp] = {
    connected: [t("Connected"), "good"],
    away: [t("Away; the site works on its own"), "bad"],
    refused: [t("Refuses; the site works on its own"), "bad"],
  }[state] ?? [t("Not tried yet"), "unknown"];
  setClass(byId(`${id}-lamp`), `lamp ${lamp}`);
  setText(byId(`${id}-state`), word);
  setText(byId(`${id}-detail`), [state === null ? "" : t("since {time}", { time: clock(since) }), spoken(server, "reason"), name].filter(Boolean).join(" · "));
  setText(byId(`${id}-sent`), sent);
}
