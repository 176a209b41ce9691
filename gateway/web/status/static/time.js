// Time as the gateway tells it: ages by its clock, hours in the site's time zone.

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
  if (total < 60) return `${Math.floor(total)} s`;
  if (total < 3600) return `${Math.floor(total / 60)} min`;
  if (total < 172800) return `${Math.floor(total / 3600)} h ${Math.floor((total % 3600) / 60)} min`;
  return `${Math.floor(total / 86400)} days`;
}

// A moment's day at the site, and the day so many days after another one, as YYYY-MM-DD.
export const dayOf = (moment) => new Intl.DateTimeFormat("en-CA", { timeZone: zone, dateStyle: "short" }).format(new Date(moment));
export const dayAfter = (day, days) => new Date(Date.parse(`${day}T12:00:00Z`) + days * 86400000).toISOString().slice(0, 10);

export function clock(moment) {
  const at = new Date(moment);
  const day = new Intl.DateTimeFormat("en-CA", { timeZone: zone, dateStyle: "short" });
  const time = new Intl.DateTimeFormat("en-GB", { timeZone: zone, timeStyle: "medium" }).format(at);
  return day.format(at) === day.format(Date.now() + offset) ? time : `${day.format(at)} ${time}`;
}
