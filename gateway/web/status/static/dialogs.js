// What speaks up: questions, the player, short notices.
import { Refused } from "./api.js";
import { byId, make, setText } from "./dom.js";
import { clock } from "./time.js";
import { recognised, spoken, t } from "./words.js";

export function toast(text, bad = false) {
  const node = make("div", bad ? "toast bad" : "toast", text);
  byId("toasts").append(node);
  setTimeout(() => node.remove(), bad ? 8000 : 4000);
}

export function confirmed(title, text, yes) {
  const dialog = byId("confirm");
  setText(byId("confirm-title"), title);
  setText(byId("confirm-text"), text);
  setText(byId("confirm-yes"), yes);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

// Asks for one line and does `act` with it. What `act` refuses is said beside the field, and the question stays open
// with what was typed. Whether it was done; `field` sets the input's attributes.
export function asked({ title, text, label, yes, act, value = "", field = {} }) {
  const dialog = byId("ask");
  const input = byId("ask-field");
  const form = byId("ask-form");
  const say = (fault) => {
    setText(byId("ask-fault"), fault);
    input.setAttribute("aria-invalid", String(fault !== ""));
  };
  setText(byId("ask-title"), title);
  setText(byId("ask-text"), text);
  setText(byId("ask-label"), label);
  setText(byId("ask-yes"), yes);
  for (const name of ["type", "min", "max", "required"]) input.removeAttribute(name);
  for (const [name, content] of Object.entries(field)) input.setAttribute(name, content);
  input.value = value;
  say("");
  const submit = async (event) => {
    event.preventDefault();
    if (form.inert) return;
    form.inert = true; // once, however often it is asked for
    let fault = "";
    try {
      await act(input.value);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      fault = error.message;
    } finally {
      form.inert = false;
    }
    const here = dialog.open && form.onsubmit === submit; // not closed, and not another question by now
    if (here && fault === "") dialog.close("yes");
    if (here && fault !== "") {
      say(fault);
      input.focus();
    }
    if (!here && fault !== "") toast(fault, true);
  };
  form.onsubmit = submit;
  dialog.returnValue = "no";
  dialog.showModal();
  input.focus();
  input.select();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

// In full screen only that element is seen, and the browser's top layer: there notices and the lost line are said too.
export function setUpNotices() {
  document.addEventListener("fullscreenchange", () => {
    for (const node of [byId("lost"), byId("toasts")]) {
      node.popover = document.fullscreenElement ? "manual" : null;
      if (document.fullscreenElement) node.showPopover();
    }
  });
}

export function setUpQuestions() {
  byId("ask-cancel").addEventListener("click", () => byId("ask").close("no"));
}

export function play(event, footage, cameraName) {
  const address = `/v1/camera/event/clip/${footage.id}`;
  const video = byId("video");
  setText(byId("player-title"), spoken(event, "name"));
  setText(byId("player-text"), `${clock(event.date_at)} · ${cameraName}`);
  setText(byId("player-fault"), "");
  const download = byId("player-download");
  download.href = address;
  download.download = `event-${event.id}-camera-${footage.camera_id}.mp4`;
  byId("player-moment").hidden = true;
  moment = footage.moment;
  byId("player-proof").href = `/status/proof/${event.id}`;
  video.poster = `/v1/camera/event/thumbnail/${footage.id}`;
  video.src = address;
  byId("player").showModal();
  video.play().catch(() => {}); // a browser that refuses to start by itself still has the controls
}

let moment = 0; // of the event in the clip, in seconds

export function setUpPlayer() {
  const dialog = byId("player");
  const video = byId("video");
  video.addEventListener("loadedmetadata", () => {
    const mark = byId("player-moment");
    mark.hidden = !(moment < video.duration);
    setText(mark.lastElementChild, t("The moment, {count} s after its begin", { count: Math.round(moment) }));
    mark.style.setProperty("--at", `${(moment / video.duration) * 100}%`);
  });
  byId("player-moment").addEventListener("click", () => {
    video.currentTime = moment;
    video.play().catch(() => {});
  });
  byId("player-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    video.pause();
    video.removeAttribute("src");
    video.removeAttribute("poster");
    video.load();
  });
  video.addEventListener("error", async () => {
    if (!video.getAttribute("src")) return;
    const answer = await fetch(video.getAttribute("src"), { headers: { Range: "bytes=0-0" } }).catch(() => null);
    const told = answer && !answer.ok ? await answer.json().catch(() => null) : null;
    setText(byId("player-fault"), told ? recognised(told.error) : t("This clip cannot be played here; try to download it."));
  });
}
