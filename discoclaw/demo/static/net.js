// Talking with the program: the token of this run is behind # in the address, and goes into a header.

const token = location.hash.slice(1);
const headers = { "X-Demo-Token": token };
export const session = `demo ${token.slice(0, 8)}`; // the name of what the browser keeps for this run

async function checked(response) {
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw Object.assign(new Error(told.error || "The demo doesn't answer"), { status: response.status });
}

export const query = (values) => new URLSearchParams(values).toString();

export async function ask(path, values = {}) {
  return (await checked(await fetch(`${path}?${query(values)}`, { headers }))).json();
}

export async function file(values) {
  return (await checked(await fetch(`/attached?${query(values)}`, { headers }))).blob();
}

export async function act(values, files = []) {
  const body = new FormData();
  body.append("act", JSON.stringify(values));
  for (const one of files) body.append("file", one, one.name);
  return (await checked(await fetch("/act", { method: "POST", headers, body }))).json();
}

// Takes each change of what somebody sees, until `stopped` (an AbortSignal) or the connection ends.
export async function follow(values, take, stopped) {
  const response = await checked(await fetch(`/view?${query(values)}`, { headers, signal: stopped }));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) take(JSON.parse(line));
  }
}
