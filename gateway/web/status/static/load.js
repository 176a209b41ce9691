// Load the page anew when its script did not come, as on a weak line.
addEventListener(
  "error",
  (event) => {
    if (!(event.target instanceof HTMLScriptElement)) return;
    document.getElementById("lost").hidden = false;
    setTimeout(() => location.reload(), 2000);
  },
  true, // such an error does not bubble
);

// Who is signed in is asked, and the stream of changes begun, while the script is still on its way.
globalThis.sessionAsked = fetch("/status/session", { signal: AbortSignal.timeout(20000) });
globalThis.sessionAsked.then((answer) => answer.clone().json()).then(({ user }) => {
  if (!user) return;
  const begun = { source: new EventSource("/status/live"), heard: [] };
  globalThis.streamBegun = begun;
  for (const name of ["snapshot", "change"]) begun.source.addEventListener(name, (event) => begun.heard?.push(event));
}).catch(() => {}); // said where the session is awaited
