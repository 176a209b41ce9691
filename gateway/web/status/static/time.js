// Time as the gateway tells it: ages by its clock, hours in the site's time zone.
import { language, n, t } from "./words.js";

const DAYS = language === "en" ? "en-CA" : language; // in English as YYYY-MM-DD, which everybody reads alike
const HOURS = language === "en" ? "en-GB" : language;
let offset = 0;
let zone = "UTC";

export function follow(now, timezone = zone) {
  offset = Date.parse(now) - Date.now();
  zone = timezone;
}

export const now = () => Date.now() + offset;

// The site's distance from Greenwich, as "GMT-05:00", where clocks beside the reader show other hours; else "".
export function otherZone() {
  const [site, here] = [zone, undefined].map((timeZone) => {
    const parts = new Intl.DateTimeFormat("en-GB", { timeZone, timeZoneName: "longOffset" }).formatToParts(now());
    return parts.find((part) => part.type === "timeZoneName").value;
  });
  return site === here ? "" : site;
}

export function seconds(since) {
  return Math.max(0, (Date.now() + offset - Date.parse(since)) / 1000);
}

export function lasting(total) {
  if (total < 60) return t("{seconds} s", { seconds: Math.floor(total) });
  if (total < 3600) return t("{minutes} min", { minutes: Math.floor(total / 60) });
  if (total < 172800) return t("{hours} h {minutes} min", { hours: Math.floor(total / 3600), minutes: Math.floor((total % 3600) / 60) });
  return n("{count} day", "{count} days", Math.floor(total / 86400));
}

// A day that is given as YYYY-MM-DD, as the language writes it.
export const dayShown = (date) => new Intl.DateTimeFormat(DAYS, { timeZone: "UTC", dateStyle: "short" }).format(Date.parse(date));

// A moment's day at the site, and the day so many days after another one, as YYYY-MM-DD.
export const dayOf = (moment) => new Intl.DateTimeFormat("en-CA", { timeZone: zone, dateStyle: "short" }).format(new Date(moment));
export const dayAfter = (day, days) => new Date(Date.parse(`${day}T12:00:00Z`) + days * 86400000).toISOString().slice(0, 10);

export function clock(moment) {
  const at = new Date(moment);
  const day = new Intl.DateTimeFormat(DAYS, { timeZone: zone, dateStyle: "short" });
  const time = new Intl.DateTimeFormat(HOURS, { timeZone: zone, timeStyle: "medium" }).format(at);
  return day.format(at) === day.format(Date.now() + offset) ? time : `${day.format(at)} ${time}`;
}
