// Reads a JSON list of diagrams on standard input, and writes what Mermaid's parser makes of each: a list of
// {commits, branches} as tests/show/gitgraph.py has it, or {error}. Packages come from node_modules beside it.
import { readFileSync } from "node:fs";
import { JSDOM } from "jsdom";

const { window } = new JSDOM("");
globalThis.window = window;
globalThis.document = window.document;
const { default: mermaid } = await import("mermaid");
mermaid.initialize({ startOnLoad: false });

const said = [];
for (const text of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    const { type, db } = await mermaid.mermaidAPI.getDiagramFromText(text);
    if (type !== "gitGraph") throw new Error(`it is a ${type}`);
    const commits = [...db.getCommits().values()].map(({ id, branch, parents, tags }) => ({
      id,
      branch,
      parents,
      tags,
    }));
    said.push({ commits, branches: db.getBranchesAsObjArray().map(({ name }) => name) });
  } catch (error) {
    said.push({ error: String(error.message ?? error).split("\n")[0] });
  }
}
process.stdout.write(JSON.stringify(said));
