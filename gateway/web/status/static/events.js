// The last events, newest first, with the footage that proves them.
import { Refused, post } from "./api.js";
import { confirmed, play, toast } from "./dialogs.js";
import { byId, fromTemplate, keyed, make, setClass, setText } from "./dom.js";
import { clock } from "./time.js";
import { because, spoken, t } from "./words.js";

const RANK = { info: 0, notice: 1, warning: 2, alarm: 3 };
let last = null;
let newest = 0;

export function setUpEvents() {
  byId("severity").addEventListener("change", () => show(false));
  byId("find").addEventListener("input", () => show(false));
}

export function showEvents(snapshot) {
  const first = last === null;
  last = snapshot;
  byId("events-section").hidden = !snapshot.user.view_events;
  show(!first);
  announce(first);
  newest = Math.max(newest, ...snapshot.events.map((event) => event.id));
}

export function forgetEvents() {
  last = null;
  newest = 0;
}

function show(arriving) {
  if (last === null) return;
  const least = RANK[byId("severity").value];
  const words = byId("find").value.trim().toLowerCase();
  const wanted = last.events.filter(
    (event) => RANK[event.severity] >= least && `${spoken(event, "name")} ${spoken(event, "description")}`.toLowerCase().includes(words),
  );
  keyed(byId("events"), wanted, {
    key: (event) => event.id,
    create: (event) => createEvent(event, { arrived: arriving && event.id > newest }),
    update: (node, event) => updateEvent(node, event, last),
  });
  byId("events").hidden = wanted.length === 0;
  byId("no-events").hidden = wanted.length !== 0;
}

export function createEvent(event, { arrived }) {
  const node = fromTemplate("event-row");
  setClass(node, `event s-${event.severity}${arrived ? " new" : ""}`);
  setText(node.querySelector("strong"), spoken(event, "name"));
  setText(node.querySelector(".description"), spoken(event, "description"));
  const time = node.querySelector("time");
  time.dateTime = event.date_at;
  time.parentNode.href = `/status/events/${event.id}`;
  node.querySelector(".forgive").addEventListener("click", () => forgive(event));
  const why = node.querySelector(".why");
  why.hidden = event.trace.length === 0;
  why.querySelector("ol").append(...event.trace.map((rule) => make("li", rule.failed ? "failed" : "", spoken(rule, "text"))));
  return node;
}

export function updateEvent(node, event, site) {
  const nameOf = (list, key, id) => list.find((one) => one[key] === id)?.name;
  const time = node.querySelector("time");
  setText(time, event.clock_trusted ? clock(event.date_at) : `${clock(event.date_at)}\u00a0?`);
  time.title = event.clock_trusted ? "" : t("The gateway's clock was not synchronised when this was stamped");
  node.querySelector(".forgive").hidden = event.passed_back === null || !site.user.correct_counts;
  const lane = nameOf(site.lanes, "lane_id", event.lane_id);
  setText(node.querySelector(".marks"), lane ?? "");
  showClips(node.querySelector(".clips"), event, site);
}

// A button for each camera's clip of an event, with its picture.
export function showClips(box, event, site) {
  const nameOf = (id) => site.cameras.find((camera) => camera.camera_id === id)?.name;
  keyed(box, event.footage, {
    key: (footage) => footage.id,
    create: (footage) => clip(event, footage),
    update: (button, footage) => {
      const name = nameOf(footage.camera_id) || t("Camera {id}", { id: String(footage.camera_id) });
      const picture = button.querySelector("img");
      const playable = footage.ready && footage.footage !== "none";
      button.disabled = !playable;
      button.footage = footage;
      button.cameraName = name;
      const missing = spoken(footage, "missing");
      const places = { event: spoken(event, "name"), camera: name, missing };
      if (!playable) {
        button.title = because(name, footage.ready ? missing : t("the clip is still being recorded"));
        button.setAttribute("aria-label", button.title);
      } else {
        button.title = missing ? t("Play: {camera}; {missing}", places) : t("Play: {camera}", places);
        button.setAttribute("aria-label", missing ? t("Play {event}, {camera}; {missing}", places) : t("Play {event}, {camera}", places));
      }
      setText(button.querySelector(".play"), playable ? (missing ? "▶ !" : "▶") : footage.ready ? "–" : "…");
      if (playable && !picture.getAttribute("src")) {
        picture.hidden = false;
        picture.src = `/v1/camera/event/thumbnail/${footage.id}`;
      }
    },
  });
}

async function forgive(event) {
  const sure = await confirmed(
    t("Let this card in again?"), t("Its next passage counts as the first, in either direction. This is recorded with your name."),
    t("Forgive"),
  );
  if (!sure) return;
  try {
    await post("/status/passback/forgive", { card_id: event.passed_back });
    toast(t("Forgiven: its next passage counts as the first."));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
  }
}

function clip(event, footage) {
  const button = fromTemplate("clip-button");
  const picture = button.querySelector("img");
  picture.addEventListener("error", () => {
    picture.hidden = true;
  });
  button.footage = footage;
  button.addEventListener("click", () => play(event, button.footage, button.cameraName));
  return button;
}

// Only what somebody must hear at once is spoken; the list itself is there to read.
function announce(first) {
  if (first) return;
  const grave = last.events.filter((event) => event.id > newest && RANK[event.severity] >= RANK.warning);
  if (grave.length) byId("announcer").replaceChildren(...grave.flatMap((event) => [make("p", "", spoken(event, "name")), make("p", "", spoken(event, "description"))]));
}
