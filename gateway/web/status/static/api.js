// Calls to the interface. The session is in a cookie that this code cannot read.

export class Refused extends Error {}

export async function call(method, path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      credentials: "same-origin",
      headers: { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(20000),
    });
  } catch (error) {
    throw new Refused("The gateway does not answer.", { cause: error });
  }
  const told = await answer.json().catch(() => ({ success: false, error: `The gateway answered ${answer.status}.` }));
  if (!answer.ok || told.success !== true) throw new Refused(told.error || `The gateway answered ${answer.status}.`);
  return told;
}

export const post = (path, body = {}) => call("POST", path, body);
export const session = () => call("GET", "/status/session"); // {user, mfa_pending}
