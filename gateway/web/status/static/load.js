// Load the page anew when a part of it did not come: on a weak line one missing module keeps all others from starting.
addEventListener(
  "error",
  (event) => {
    if (!(event.target instanceof HTMLScriptElement)) return;
    document.getElementById("lost").hidden = false;
    setTimeout(() => location.reload(), 2000);
  },
  true, // such an error does not bubble
);

// Who is signed in is asked while the modules are still on their way.
globalThis.sessionAsked = fetch("/status/session", { signal: AbortSignal.timeout(20000) });
globalThis.sessionAsked.catch(() => {}); // said where it is awaited
