// The dialog that shows a camera live, and tries again for as long as it is open.
import { byId, setText } from "./dom.js";
import { NotShown, watch } from "./whep.js";

let closing = null;

export function showLive(camera) {
  closing?.abort();
  closing = new AbortController();
  setText(byId("monitor-title"), camera.name);
  setText(byId("monitor-fault"), "");
  byId("monitor-video").poster = `/v1/camera/thumbnail/${camera.camera_id}`;
  byId("monitor").showModal();
  keepWatching(camera.camera_id, closing.signal);
}

async function keepWatching(cameraId, signal) {
  const video = byId("monitor-video");
  while (!signal.aborted) {
    state("Connecting…", "busy");
    try {
      await watch(video, cameraId, signal, () => {
        state("Live", "good");
        setText(byId("monitor-fault"), "");
      });
      return;
    } catch (error) {
      if (!(error instanceof NotShown)) throw error;
      setText(byId("monitor-fault"), error.message);
      state(error.retryAfter ? "Trying again" : "Not shown", error.retryAfter ? "warn" : "bad");
      if (!error.retryAfter) return;
      await pause(error.retryAfter * 1000, signal);
    }
  }
}

function state(word, kind) {
  setText(byId("monitor-state"), word);
  byId("monitor-state").className = `pill ${kind}`;
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

export function setUpMonitor() {
  const dialog = byId("monitor");
  byId("monitor-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => closing?.abort());
  addEventListener("pagehide", () => closing?.abort());
}
