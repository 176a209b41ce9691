// The stream of changes. It comes back by itself; what it cannot tell apart from a dead line is ended and begun anew.
import { session } from "./api.js";

const SILENCE = 6000; // the gateway speaks at least every 2 s
const AGAIN = 2000;

export class Live {
  constructor({ snapshot, here, lost, signedOut }) {
    this.on = { snapshot, here, lost, signedOut };
    this.source = null;
    this.state = null;
    this.timer = 0;
  }

  start() {
    this.stop();
    this.source = new EventSource("/status/live");
    this.source.addEventListener("snapshot", (event) => this.show(JSON.parse(event.data)));
    this.source.addEventListener("change", (event) => this.show(changed(this.state, JSON.parse(event.data))));
    this.source.addEventListener("here", (event) => {
      this.watch();
      this.on.here(JSON.parse(event.data).now);
    });
    this.source.addEventListener("signed-out", () => this.ended());
    this.source.addEventListener("error", () => {
      this.on.lost();
      if (this.source && this.source.readyState === EventSource.CLOSED) this.later(AGAIN);
    });
    this.watch();
  }

  show(state) {
    this.watch();
    this.state = state;
    this.on.snapshot(state);
  }

  stop() {
    clearTimeout(this.timer);
    if (this.source) this.source.close();
    this.source = null;
  }

  ended() {
    this.stop();
    this.on.signedOut();
  }

  watch() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.on.lost();
      this.later(0);
    }, SILENCE);
  }

  // Ask who we are before trying again: a session may have ended while the line was down.
  later(wait) {
    this.stop();
    this.timer = setTimeout(async () => {
      try {
        if ((await session()).user) this.start();
        else this.ended();
      } catch {
        this.later(AGAIN);
      }
    }, wait);
  }
}

// What tells the rows of a list apart; the gateway has the same table.
const KEYS = {
  problems: (problem) => [problem.kind, problem.part, problem.id, problem.subject].join("/"),
  lanes: (lane) => lane.lane_id,
  areas: (area) => area.area_id,
  devices: (device) => String(device.device_id),
  cameras: (camera) => String(camera.camera_id),
  events: (event) => String(event.id),
};

// The state after a change: fields that came replace their own, and of lists the rows that came.
function changed(state, change) {
  const after = { ...state, ...change };
  for (const [name, key] of Object.entries(KEYS)) {
    if (!(name in change)) continue;
    const { put, keys } = change[name];
    const rows = new Map([...state[name], ...put].map((row) => [key(row), row]));
    after[name] = keys ? keys.map((one) => rows.get(one)) : [...rows.values()];
  }
  return after;
}
