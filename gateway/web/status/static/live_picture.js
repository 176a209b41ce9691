// One camera's picture: a still while it can be seen, and live where somebody wants it: by WHEP, or where that does not
// come through by HLS or by stills in quick succession.
import { fromTemplate, setClass, setText } from "./dom.js";
import { NotShown, watch } from "./whep.js";
import { t } from "./words.js";

const STILL_EVERY = 10000;
const QUICK_STILL_EVERY = 2000;
const INSTEAD_FOR = 30000; // then WHEP is tried again
const HLS_BEGINS_WITHIN = 15000;
const TRIES = 2;
const HLS = "application/vnd.apple.mpegurl";
const pictures = new Set();

const looks = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    target.picture.visible = isIntersecting;
    target.picture.settle();
    if (!target.isConnected) target.picture.forget();
  }
});
document.addEventListener("visibilitychange", () => pictures.forEach((picture) => picture.settle()));
addEventListener("pagehide", () => pictures.forEach((picture) => picture.stop()));

// Begin the views anew that are not seen to move: what they waited for has come back.
export function retryPictures() {
  for (const picture of pictures) {
    if (!picture.ending || picture.node.classList.contains("moving")) continue;
    picture.stop();
    picture.settle();
  }
}

export class LivePicture {
  constructor() {
    this.node = fromTemplate("live-picture");
    this.node.picture = this;
    this.image = this.node.querySelector("img");
    this.video = this.node.querySelector("video");
    this.button = this.node.querySelector(".picture");
    this.wanted = false;
    this.visible = false;
    this.ending = null; // ends the present view
    this.stillAt = 0;
    this.still = null;
    this.image.addEventListener("load", () => (this.image.hidden = false));
    this.image.addEventListener("error", () => (this.image.hidden = true));
    this.button.addEventListener("click", () => this.want(!this.wanted));
    const full = this.node.querySelector(".full");
    full.hidden = !document.fullscreenEnabled;
    full.addEventListener("click", () => {
      if (document.fullscreenElement) document.exitFullscreen();
      else (this.node.closest(".lane") ?? this.node).requestFullscreen().catch(() => {}); // a lane with its buttons
    });
    pictures.add(this);
    looks.observe(this.node);
  }

  // The camera as it is now; another one ends the view of the last.
  show(camera) {
    if (this.camera?.camera_id !== camera.camera_id) {
      this.stop();
      this.image.hidden = true;
      this.still = null;
      this.stillAt = 0;
    }
    this.camera = camera;
    this.image.alt = t("Latest picture of {camera}", { camera: camera.name });
    this.label();
    this.settle();
  }

  want(live) {
    this.wanted = live;
    this.label();
    this.settle();
  }

  label() {
    const label = this.button.querySelector(".hidden");
    label.translate = this.wanted; // else it is a name alone
    setText(label, this.wanted ? t("Stop watching {camera}", { camera: this.camera.name }) : this.camera.name);
    this.button.querySelector(".watch").hidden = this.wanted;
  }

  // Only what can be seen is fetched.
  settle() {
    const seen = this.visible && document.visibilityState === "visible" && this.camera;
    if (seen && this.wanted) this.begin();
    else this.stop();
    if (seen && !this.ending && Date.now() - this.stillAt > STILL_EVERY) this.refresh();
  }

  refresh() {
    const at = this.camera.last_segment_at;
    if (!at || at === this.still) return;
    this.still = at;
    this.stillAt = Date.now();
    this.image.src = `/v1/camera/thumbnail/${this.camera.camera_id}?at=${encodeURIComponent(at)}`;
  }

  begin() {
    if (this.ending) return;
    this.refresh(); // until the first picture comes
    this.ending = new AbortController();
    this.keep(this.camera.camera_id, this.ending.signal);
  }

  stop() {
    this.ending?.abort();
    this.ending = null;
    this.node.classList.remove("moving");
    this.tell("", "");
    this.fault("");
  }

  forget() {
    this.stop();
    looks.unobserve(this.node);
    pictures.delete(this);
  }

  async keep(cameraId, signal) {
    let failures = 0;
    while (!signal.aborted) {
      this.tell(t("Connecting…"), "busy");
      try {
        await watch(this.video, cameraId, signal, () => {
          failures = 0;
          this.fault("");
          this.shown(t("Live"), "good");
        });
        return;
      } catch (error) {
        if (!(error instanceof NotShown)) throw error;
        if (signal.aborted) return;
        failures += 1;
        this.fault(error.message);
        this.node.classList.remove("moving");
        if (error.retryAfter && failures < TRIES) {
          this.tell(t("Trying again"), "warn");
          await pause(error.retryAfter * 1000, signal);
        } else {
          await this.instead(cameraId, signal);
          failures = 0;
        }
      }
    }
  }

  // What a browser or a network without WebRTC still shows.
  async instead(cameraId, signal) {
    if (this.video.canPlayType(HLS) && (await this.byHls(cameraId, signal))) return;
    for (let left = INSTEAD_FOR; left > 0 && !signal.aborted; left -= QUICK_STILL_EVERY) {
      this.tell(t("Stills"), "warn");
      this.refresh();
      await pause(QUICK_STILL_EVERY, signal);
    }
  }

  async byHls(cameraId, signal) {
    let played = false;
    const ended = new Promise((resolve) => {
      for (const name of ["error", "ended"]) this.video.addEventListener(name, () => resolve(), { once: true });
      signal.addEventListener("abort", () => resolve());
      setTimeout(() => played || resolve(), HLS_BEGINS_WITHIN);
    });
    this.video.addEventListener("playing", () => {
      played = true;
      this.shown(t("Live, some seconds late"), "good");
    }, { once: true });
    this.video.src = `/v1/camera/live/${cameraId}/master.m3u8`;
    await ended;
    this.video.removeAttribute("src");
    this.video.load();
    return played;
  }

  shown(word, kind) {
    this.node.classList.add("moving");
    this.tell(word, kind);
  }

  tell(word, kind) {
    const state = this.node.querySelector(".live-state");
    setText(state, word);
    setClass(state, `pill live-state ${kind}`);
    state.hidden = word === "";
  }

  fault(text) {
    setText(this.node.querySelector(".fault"), text);
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
