// The stream of changes. It comes back by itself; what it cannot tell apart from a dead line is ended and begun anew.
//
// A browser keeps six connections to a host, for all its tabs. A page that nobody sees leaves its own to the others,
// and looks once a minute, for the count in its title.
import { call, session } from "./api.js";

const SILENCE = 4500; // the gateway speaks at least every 2 s; whoever looks knows within 5 s
const ASLEEP = 2 * SILENCE; // without an event, though the watch is set: the browser slept, or its clock was set
const AGAIN = 2000;
const HIDDEN_FOR = 30000;
const LOOK_EVERY = 60000;

export class Live {
  // `mayRest`: nobody has asked to be called at once.
  constructor({ snapshot, here, lost, signedOut, mayRest }) {
    this.on = { snapshot, here, lost, signedOut };
    this.mayRest = mayRest;
    this.source = null;
    this.state = null;
    this.timer = 0;
    this.hiding = 0;
    this.isOn = false;
    this.heard = 0;
    document.addEventListener("visibilitychange", () => this.settle());
  }

  // Follow the gateway until `end`.
  start() {
    this.isOn = true;
    this.open();
  }

  end() {
    this.isOn = false;
    this.settle();
    this.stop();
  }

  settle() {
    clearTimeout(this.hiding);
    if (!this.isOn) return;
    if (document.visibilityState === "hidden") {
      this.hiding = setTimeout(() => this.rest(), HIDDEN_FOR);
    } else if (!this.source) {
      if (Math.abs(Date.now() - this.heard) > SILENCE) this.on.lost();
      this.later(0);
    }
  }

  rest() {
    if (!this.mayRest()) {
      this.hiding = setTimeout(() => this.rest(), HIDDEN_FOR);
      return;
    }
    this.stop();
    this.timer = setTimeout(() => this.look(), LOOK_EVERY);
  }

  async look() {
    try {
      const { snapshot } = await call("GET", "/status/now");
      if (!this.isOn || this.source) return;
      this.take(snapshot);
      this.rest();
    } catch {
      if (this.isOn && !this.source) this.later(0);
    }
  }

  open() {
    this.stop();
    const begun = globalThis.streamBegun; // by `load.js`, once
    globalThis.streamBegun = undefined;
    const heard = begun?.heard ?? [];
    if (begun) begun.heard = null; // from here on events are heard below
    this.source = begun?.source ?? new EventSource("/status/live");
    this.heard = Date.now();
    this.hear("snapshot", (snapshot) => this.take(snapshot));
    this.hear("change", (change) => this.take(changed(this.state, change)));
    this.hear("here", ({ now }) => this.on.here(now));
    this.source.addEventListener("signed-out", () => this.ended());
    this.source.addEventListener("error", () => {
      this.on.lost();
      if (this.source && this.source.readyState === EventSource.CLOSED) this.later(AGAIN);
    });
    this.watch();
    this.settle();
    for (const { type, data } of heard) this.source?.dispatchEvent(new MessageEvent(type, { data }));
  }

  // What waited in the browser while it slept is old, and the line behind it may be dead: the state is asked for anew.
  hear(name, act) {
    this.source.addEventListener(name, (event) => {
      const asleep = Math.abs(Date.now() - this.heard) > ASLEEP;
      this.heard = Date.now();
      if (asleep) {
        this.on.lost();
        this.later(0);
        return;
      }
      this.watch();
      act(JSON.parse(event.data));
    });
  }

  take(state) {
    this.heard = Date.now();
    this.state = state;
    this.on.snapshot(state);
  }

  stop() {
    clearTimeout(this.timer);
    if (this.source) this.source.close();
    this.source = null;
  }

  ended() {
    this.end();
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
        const { user } = await session();
        if (!this.isOn) return;
        if (user) this.open();
        else this.ended();
      } catch {
        if (this.isOn) this.later(AGAIN);
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
