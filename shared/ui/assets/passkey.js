// Passkeys: <form data-passkey="get" data-options="address" hidden> with a field "credential" asks the address what to
// prove, has the browser prove it, and sends the proof as its form. "create" makes a new passkey instead. Without this
// script, or in a browser that has no passkeys, the form stays hidden and [data-passkey-missing] says so.

if (window.PublicKeyCredential && navigator.credentials) {
  for (const note of document.querySelectorAll("[data-passkey-missing]")) {
    note.hidden = true;
  }
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      prove(form);
    });
  }
}

async function prove(form) {
  const button = form.querySelector("button");
  button.disabled = true;
  say(form, "");
  try {
    const publicKey = await ask(form);
    const credential = await navigator.credentials[form.dataset.passkey]({ publicKey });
    form.elements.credential.value = JSON.stringify(toJSON(credential));
    form.submit();
  } catch (error) {
    say(form, reason(error));
  } finally {
    button.disabled = false;
  }
}

async function ask(form) {
  const answer = await fetch(form.dataset.options, { method: "POST", redirect: "manual" });
  if (answer.status === 429) {
    throw new Error("There were too many attempts. Wait a minute and try again.");
  }
  if (!answer.ok) {
    throw new Error("This did not work. Load the page again and try once more.");
  }
  return fromJSON((await answer.json()).publicKey);
}

// say shows what went wrong beside the button, and tells it to those who listen to the page.
function say(form, text) {
  const fault = form.querySelector("[data-passkey-fault]");
  fault.textContent = text;
  fault.hidden = !text;
}

function reason(error) {
  switch (error.name) {
    case "NotAllowedError":
    case "AbortError":
      return "Nothing was done: it was cancelled, or took too long. Try again.";
    case "InvalidStateError":
      return "This device has a passkey of yours already.";
    case "SecurityError":
      return "Passkeys do not work under this address. Open the console under its usual one.";
    case "Error":
      return error.message;
  }
  return "The browser could not do this. Try again, or use your password.";
}

// Browsers work with bytes, the server writes them as base64url.
function fromJSON(options) {
  options.challenge = bytes(options.challenge);
  if (options.user) {
    options.user.id = bytes(options.user.id);
  }
  for (const list of [options.allowCredentials, options.excludeCredentials]) {
    for (const credential of list || []) {
      credential.id = bytes(credential.id);
    }
  }
  return options;
}

function toJSON(credential) {
  const response = { clientDataJSON: text(credential.response.clientDataJSON) };
  for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) {
      response[name] = text(credential.response[name]);
    }
  }
  if (credential.response.getTransports) {
    response.transports = credential.response.getTransports();
  }
  return { id: credential.id, rawId: text(credential.rawId), type: credential.type, response };
}

function bytes(base64url) {
  const binary = atob(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

function text(buffer) {
  const binary = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
