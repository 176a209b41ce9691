// The stream of snapshots. It comes back by itself; what it cannot tell apart from a dead line is ended and begun anew.
import { session } from "./api.js";

const SILENCE = 6000; // the gateway speaks at least every 2 s
const AGAIN = 2000;

export class Live {
  constructor({ snapshot, here, lost, signedOut }) {
    this.on = { snapshot, here, lost, signedOut };
    this.source = null;
    this.timer = 0;
  }

  start() {
    this.stop();
    this.source = new EventSource("/status/live");
    this.source.addEventListener("snapshot", (event) => {
      this.watch();
      this.on.snapshot(JSON.parse(event.data));
    });
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
