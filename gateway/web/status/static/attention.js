// Calling somebody: how many problems nobody knows of, in the tab's title; by choice a sound and a notification at alarms.
// The title names the view too, so that several tabs, and what a browser remembers, can be told apart.
import { byId } from "./dom.js";
import { because, spoken } from "./words.js";

const SOUND = "sound-at-alarms";
const NOTIFY = "notify-at-alarms";
const keyOf = (problem) => [problem.kind, problem.part, problem.id, problem.subject].join("/");
let called = null; // the alarms that were there at the last look; null before the first
let site = ""; // "" before the first look
let count = 0; // problems that nobody has acknowledged

export function setUpAttention() {
  const sound = byId("sound");
  const notify = byId("notify");
  sound.checked = localStorage.getItem(SOUND) === "yes";
  notify.checked = localStorage.getItem(NOTIFY) === "yes" && globalThis.Notification?.permission === "granted";
  sound.addEventListener("change", () => {
    localStorage.setItem(SOUND, sound.checked ? "yes" : "no");
    if (sound.checked) beep(); // so that one knows it, and the browser allows it from now on
  });
  notify.addEventListener("change", async () => {
    if (notify.checked && (await globalThis.Notification?.requestPermission()) !== "granted") notify.checked = false;
    localStorage.setItem(NOTIFY, notify.checked ? "yes" : "no");
  });
}

export function showAttention({ gateway, problems, now }) {
  const open = problems.filter((problem) => problem.severity !== "notice" && problem.acknowledged_by === "");
  [site, count] = [gateway.site, open.length];
  showTitle();
  const alarms = problems.filter((problem) => problem.severity === "alarm" && !(problem.silent_until > now));
  const fresh = called === null ? [] : alarms.filter((problem) => !called.has(keyOf(problem)));
  called = new Set(alarms.map(keyOf));
  if (fresh.length === 0) return;
  if (byId("sound").checked) beep();
  if (byId("notify").checked) {
    for (const problem of fresh) new Notification(because(gateway.site, spoken(problem, "title")), { body: spoken(problem, "text"), tag: keyOf(problem) });
  }
}

export function showTitle() {
  if (!site) return;
  const view = document.querySelector('.views a[aria-current="page"], #user a[aria-current="page"]');
  const named = view && view.getAttribute("href") !== "/status/" ? [view.textContent] : [];
  document.title = `${count ? `(${count}) ` : ""}${[...named, site, "Edge gateway"].join(" · ")}`;
}

// Whether somebody wants to hear of an alarm as it comes.
export const callsAtOnce = () => byId("sound").checked || byId("notify").checked;

export function forgetAttention() {
  called = null;
}

function beep() {
  const audio = new AudioContext();
  const gain = audio.createGain();
  gain.gain.value = 0.2;
  gain.connect(audio.destination);
  for (const [at, pitch] of [[0, 880], [0.25, 660]]) {
    const tone = audio.createOscillator();
    tone.frequency.value = pitch;
    tone.connect(gain);
    tone.start(audio.currentTime + at);
    tone.stop(audio.currentTime + at + 0.2);
  }
  setTimeout(() => audio.close(), 1000);
}
