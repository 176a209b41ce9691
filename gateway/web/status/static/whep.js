// A camera live by WebRTC, as WHEP has it: offer, answer, and an end that frees the gateway's side at once.
import { say, t } from "./words.js";

const CONNECT_WITHIN = 10000;

export class NotShown extends Error {
  constructor(message, retryAfter) {
    super(message);
    this.retryAfter = retryAfter; // seconds; 0: trying again will not help
  }
}

// Shows the camera in the video element until `signal` is aborted, and then returns. Throws NotShown when it cannot
// begin or breaks off. `live` is called at the first picture.
export async function watch(video, cameraId, signal, live) {
  const connection = new RTCPeerConnection();
  let session = null;
  try {
    connection.addTransceiver("video", { direction: "recvonly" });
    connection.addEventListener("track", ({ track, receiver }) => {
      if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0; // a technician wants now, not smooth
      video.srcObject = new MediaStream([track]);
    });
    const ended = over(connection, signal);
    const shown = firstPicture(video).then(live);
    await connection.setLocalDescription(await connection.createOffer());
    const answer = await fetch(`/v1/camera/whep/${cameraId}`, {
      method: "POST",
      headers: { "Content-Type": "application/sdp", Texts: "keyed" },
      body: connection.localDescription.sdp,
      signal,
    });
    if (answer.status !== 201) throw await refusal(answer);
    session = answer.headers.get("Location");
    await connection.setRemoteDescription({ type: "answer", sdp: await answer.text() });
    await within(Promise.race([shown, ended]), addresses(connection));
    await ended;
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof NotShown) throw error;
    throw new NotShown(t("The gateway does not answer."), 3);
  } finally {
    // in this order: once the connection is gone there is no session any more to end
    if (session) await fetch(session, { method: "DELETE", keepalive: true }).catch(() => {});
    connection.close();
    video.srcObject = null;
  }
}

function over(connection, signal) {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => resolve());
    connection.addEventListener("connectionstatechange", () => {
      if (["failed", "closed", "disconnected"].includes(connection.connectionState)) {
        reject(new NotShown(t("The live picture broke off."), 2));
      }
    });
  });
}

function firstPicture(video) {
  return new Promise((resolve) => {
    video.addEventListener("playing", resolve, { once: true });
  });
}

function within(promise, tried) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new NotShown(
      t("No picture came over UDP from {address}. A firewall or a router between this browser and the gateway may hold it up: let UDP through, or name an address that browsers reach under [live] in the site file.", { address: tried }), 5,
    )), CONNECT_WITHIN);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function addresses(connection) {
  const told = [...connection.remoteDescription.sdp.matchAll(/^a=candidate:\S+ \d+ \S+ \d+ (\S+) (\d+)/gm)];
  return [...new Set(told.map(([, host]) => host))].join(", ") || t("the gateway");
}

async function refusal(answer) {
  const told = await answer.json().catch(() => null);
  const retry = Number(answer.headers.get("Retry-After")) || (answer.status >= 500 ? 3 : 0);
  return new NotShown(told?.error ? say(told.said ?? told.error) : t("The gateway answered {status}.", { status: answer.status }), retry);
}
