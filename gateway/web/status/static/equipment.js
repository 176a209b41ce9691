// Cameras, devices, central and the gateway itself.
import { Refused, post } from "./api.js";
import { toast } from "./dialogs.js";
import { byId, fromTemplate, keyed, make, setClass, setText } from "./dom.js";
import { LivePicture } from "./live_picture.js";
import { clock, lasting, seconds } from "./time.js";
import { say } from "./words.js";

const CONDITIONS = {
  starting: ["Starting", "busy"], recording: ["Recording", "good"], unreachable: ["Unreachable", "bad"],
  refused: ["Refused", "bad"], unsupported: ["No usable video", "bad"], stalled: ["Stalled", "warn"], disk_failed: ["Disk failed", "bad"],
};
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
      toast("Everything is fetched again as soon as central answers.");
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
    ["Version", gateway.version, ""],
    ["Running", lasting(seconds(gateway.started_at)), ""],
    ["Clock", gateway.clock_trusted ? "synchronised" : "not synchronised", gateway.clock_trusted ? "" : "warn"],
    ["Time zone", gateway.timezone, ""],
    ...(last.storage && last.cameras.length ? [["Footage", last.storage.text, last.storage.short ? "bad" : ""]] : []),
    ["Database", gateway.store_failing || "working", gateway.store_failing ? "bad" : ""],
    ...(kept === null ? [] : [["Events", kept, ""]]),
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
    camera.condition === "recording" ? `${(camera.bits_per_second / 1e6).toFixed(2)} Mbit/s` : "",
    camera.last_segment_at ? `footage until ${clock(camera.last_segment_at)}` : "no footage yet",
    camera.reconnects ? `${camera.reconnects} reconnect${camera.reconnects === 1 ? "" : "s"}` : "",
  ];
  setText(node.querySelector(".figures"), figures.filter(Boolean).join(" · "));
  setText(node.querySelector(".camera-text .fault"), camera.detail);
  node.live.show(camera);
}

function updateDevice(node, device) {
  node.device = device;
  const kind = device.online === null ? "unknown" : device.online ? "good" : "bad";
  setClass(node, `device ${device.online === false ? "lost" : ""}`);
  setClass(node.querySelector(".lamp"), `lamp ${kind}`);
  setText(node.querySelector("strong"), device.name);
  setText(node.querySelector(".kind"), `${device.kind} · ${device.device_id}`);
  keyed(node.querySelector(".points"), device.points, {
    key: (point) => point.name,
    create: () => make("span"),
    update: (mark, point) => {
      setText(mark, point.name);
      setClass(mark, `point ${point.state}`);
      mark.title = `${point.name}: ${point.state}`;
    },
  });
  ageDevice(node);
}

function ageDevice(node) {
  const { online, since, detail, refusals } = node.device;
  const word = online === null ? "No contact yet" : online ? "Online" : "Offline";
  const state = online === null ? word : `${word} for ${lasting(seconds(since))}`;
  const { count, reason } = refusals;
  const refused = count === 1 ? `1 message refused: ${reason}` : `${count} messages refused, the last: ${reason}`;
  setText(node.querySelector(".state"), [detail ? `${state}: ${detail}` : state, count ? refused : ""].filter(Boolean).join(" · "));
}

export const refusesUs = (central) => central.notices.some((notice) => notice.kind === "central_sign_in_refused");

function showCentral({ central, user }) {
  byId("central-section").hidden = central === null;
  if (central === null) return;
  const { reachable } = central;
  const refused = refusesUs(central);
  setClass(byId("central-lamp"), `lamp ${reachable === null ? "unknown" : reachable && !refused ? "good" : "bad"}`);
  const answers = refused ? "Answers, but refuses the sign-in; the site works on its own" : "Online";
  const word = reachable === null ? "Not tried yet" : reachable ? answers : "Offline; the site works on its own";
  setText(byId("central-state"), word);
  const signedIn = central.last_sign_in ? `last signed in ${clock(central.last_sign_in)}` : "never signed in yet";
  const parts = [reachable === null ? "" : `since ${clock(central.since)}`, central.error, signedIn];
  setText(byId("central-detail"), parts.filter(Boolean).join(" · "));
  const fetched = central.pulled_at ? `${central.pulled}, fetched ${clock(central.pulled_at)}` : "Nothing fetched yet";
  setText(byId("central-fetched"), central.progress ? `Fetching ${central.progress} …` : fetched);
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
  setText(refresh, central.refreshing ? "Fetching everything again …" : "Fetch everything again");
}

function showFleet({ fleet }) {
  byId("fleet-section").hidden = fleet === null;
  if (fleet === null) return;
  const left = fleet.waiting === 1 ? "1 record waits for the fleet" : `${fleet.waiting} records wait for the fleet`;
  showServer("fleet", fleet, `as ${fleet.name}`, fleet.waiting ? left : "Everything is with the fleet");
}

function showBroker({ broker }) {
  byId("broker-section").hidden = broker === null;
  if (broker === null) return;
  const left = broker.waiting === 1 ? "1 event waits for the broker" : `${broker.waiting} events wait for the broker`;
  showServer("broker", broker, broker.broker, broker.waiting ? left : "Everything is with the broker");
}

// The line to a server: its state, since when, why, with whom, and what waits for it.
function showServer(id, { state, since, reason }, name, sent) {
  const [word, lamp] = {
    connected: ["Connected", "good"],
    away: ["Away; the site works on its own", "bad"],
    refused: ["Refuses; the site works on its own", "bad"],
  }[state] ?? ["Not tried yet", "unknown"];
  setClass(byId(`${id}-lamp`), `lamp ${lamp}`);
  setText(byId(`${id}-state`), word);
  setText(byId(`${id}-detail`), [state === null ? "" : `since ${clock(since)}`, reason, name].filter(Boolean).join(" · "));
  setText(byId(`${id}-sent`), sent);
}
