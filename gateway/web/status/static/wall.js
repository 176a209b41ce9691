// The wall: all lanes, cameras and last events on one screen without scrolling. Built only while it is looked at.
import { byId, fromTemplate, keyed, make, setClass, setText } from "./dom.js";
import { addressOf, decisionOf, showScene, stateOf, wrongWith } from "./lanes.js";
import { LivePicture } from "./live_picture.js";
import { clock, now } from "./time.js";
import { onEnter } from "./views.js";
import { because, mentions, recognised, spoken } from "./words.js";

const MOST_EVENTS = 40; // more than fit; the rest is cut off
const LANE_SHAPE = 1.9; // width to height of the tiles that look best
const CAMERA_SHAPE = 1.6;
let last = null;

export function setUpWall() {
  onEnter("wall", () => {
    place();
    if (last) showWall(last);
  }, empty);
  addEventListener("resize", place);
  document.addEventListener("fullscreenchange", place);
  const full = byId("wall-full");
  full.hidden = !document.fullscreenEnabled;
  full.addEventListener("click", () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else byId("view-wall").requestFullscreen().catch(() => {});
  });
}

export function showWall(snapshot) {
  last = snapshot;
  if (byId("view-wall").hidden) return;
  const { gateway, problems, user, lanes, cameras } = snapshot;
  const events = user.view_events ? snapshot.events.slice(0, MOST_EVENTS) : [];
  setText(byId("wall-site"), gateway.site);
  setText(byId("wall-verdict"), spoken(gateway, "headline"));
  setClass(byId("wall-verdict"), `pill ${gateway.ready ? (problems.length ? "warn" : "good") : "bad"}`);
  keyed(byId("wall-lanes"), lanes, { key: (lane) => lane.lane_id, create: createLane, update: updateLane });
  keyed(byId("wall-cameras"), cameras, {
    key: (camera) => camera.camera_id,
    create: () => {
      const tile = make("figure", "card wall-camera");
      tile.live = new LivePicture();
      tile.append(tile.live.node, make("figcaption", "small"));
      return tile;
    },
    update: (tile, camera) => {
      tile.live.show(camera);
      tile.lastChild.translate = Boolean(camera.detail); // else it is a name alone
      setText(tile.lastChild, camera.detail ? because(camera.name, recognised(camera.detail)) : camera.name);
      setClass(tile.lastChild, `small ${camera.condition === "recording" ? "" : "fault"}`);
    },
  });
  keyed(byId("wall-events"), events, {
    key: (event) => event.id,
    create: (event) => {
      const row = make("li", `s-${event.severity}`);
      const time = make("a", "small dim");
      time.href = `/status/events/${event.id}`;
      row.append(time, make("strong", "", spoken(event, "name")), make("span", "small", spoken(event, "description")));
      return row;
    },
    update: (row, event) => setText(row.firstChild, clock(event.date_at)),
  });
  byId("wall-none").hidden = lanes.length > 0 || !user.view_devices;
  byId("wall-lanes").hidden = lanes.length === 0;
  byId("wall-cameras").hidden = cameras.length === 0;
  byId("wall-events").hidden = events.length === 0;
  arrange(byId("wall-lanes"), lanes.length, LANE_SHAPE);
  arrange(byId("wall-cameras"), cameras.length, CAMERA_SHAPE);
  ageWall();
}

export function ageWall() {
  if (!byId("view-wall").hidden) setText(byId("wall-clock"), clock(now()));
}

export function forgetWall() {
  last = null;
  empty();
}

function empty() {
  for (const id of ["wall-lanes", "wall-cameras", "wall-events"]) byId(id).replaceChildren();
}

function createLane(lane) {
  const tile = fromTemplate("wall-lane");
  tile.querySelector(".scene").replaceWith(byId("lane-card").content.querySelector(".scene").cloneNode(true));
  tile.querySelector("a").href = addressOf(lane);
  return tile;
}

function updateLane(tile, lane) {
  tile.lane = lane;
  const [word, kind] = stateOf(lane);
  setText(tile.querySelector("a"), lane.name);
  setText(tile.querySelector(".phase"), word);
  setClass(tile.querySelector(".phase"), `pill phase ${kind}`);
  setClass(tile, `card wall-lane ${kind === "bad" ? "fault-now" : ""}`);
  showScene(tile.querySelector(".scene"), lane);
  const wrong = wrongWith(lane);
  const event = decisionOf(lane);
  const note = mentions(lane.said?.note, event?.read.credential) ? "" : spoken(lane, "note"); // said below already
  const said = [...wrong, spoken(lane, "order_text"), note].filter(Boolean).join(" · ");
  setText(tile.querySelector(".said"), said);
  setClass(tile.querySelector(".said"), `said small ${wrong.length ? "fault" : ""}`);
  setText(tile.querySelector(".decision"), event ? `${clock(event.date_at)} · ${spoken(event, "description")}` : "");
}

// As many columns as give tiles of about this shape in the room that there is.
function arrange(box, count, shape) {
  const { clientWidth: width, clientHeight: height } = box;
  if (count === 0 || height === 0) return;
  const columns = Math.min(count, Math.max(1, Math.round(Math.sqrt((count * width) / (height * shape)))));
  box.style.setProperty("--columns", columns);
  box.style.setProperty("--rows", Math.ceil(count / columns));
}

function place() {
  const wall = byId("view-wall");
  if (wall.hidden) return;
  const above = document.fullscreenElement ? 0 : wall.getBoundingClientRect().top + scrollY;
  wall.style.setProperty("--above", `${above}px`);
  if (last) showWall(last);
}
