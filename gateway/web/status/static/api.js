// Calls to the interface. The session is in a cookie that this code cannot read.
import { now } from "./time.js";
import { say, t } from "./words.js";

// Its message is in the reader's language.
export class Refused extends Error {}

export function call(method, path, body, headers = {}) {
  return told(fetch(path, {
    method,
    credentials: "same-origin",
    headers: { "Content-Type": "application/json", Texts: "keyed", ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(20000),
  }));
}

async function told(asked) {
  let answer;
  try {
    answer = await asked;
  } catch (error) {
    throw new Refused(t("The gateway does not answer."), { cause: error });
  }
  const said = await answer.json().catch(() => ({ success: false }));
  if (!answer.ok || said.success !== true) throw new Refused(said.error ? say(said.said ?? said.error) : t("The gateway answered {status}.", { status: answer.status }));
  return said;
}

export const post = (path, body = {}) => call("POST", path, body);
export const session = () => call("GET", "/status/session"); // {user, mfa_pending}

// The same, asked by `load.js` while the modules were on their way; once.
export function firstSession() {
  const asked = globalThis.sessionAsked ?? fetch("/status/session");
  globalThis.sessionAsked = undefined;
  return told(asked);
}

// Nobody commands a gate by an old picture: a question may still be open when the line goes. Nor does a command that
// the network held back: the gateway refuses it by the time at which it was sent.
export function postAtOnce(path, body) {
  if (document.body.classList.contains("stale")) throw new Refused(t("There is no connection, so nothing was sent."));
  return call("POST", path, body, { "Sent-At": new Date(now()).toISOString() });
}
