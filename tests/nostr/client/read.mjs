// Reads {secret, events} on standard input: the bot's secret key in hex, and signed events. Writes what a client
// that knows nothing of DiscoClaw but docs/admins/nostr.md makes of each: {kind, d, body, hash}, or {error}. Signatures
// and NIP-44 are nostr-tools', the secretbox is tweetnacl's, the derived key and `hash` (SHA-256 of the plaintext)
// are node's. Packages come from node_modules beside it.
import { createHash, hkdfSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { getPublicKey, verifyEvent } from "nostr-tools/pure";
import * as nip44 from "nostr-tools/nip44";
import nacl from "tweetnacl";

const { secret, events } = JSON.parse(readFileSync(0, "utf8"));
const key = Buffer.from(secret, "hex");
const own = getPublicKey(key);
const conversation = nip44.v2.utils.getConversationKey(key, own);
const box = new Uint8Array(hkdfSync("sha256", key, Buffer.alloc(0), "discoclaw:secretbox-v1", 32));

function opened(event, tags) {
  if (event.kind === 30078) {
    if (tags.encrypted !== "nip44") throw new Error("no NIP-44");
    return nip44.v2.decrypt(event.content, conversation);
  }
  if (tags.enc !== "secretbox-v1") throw new Error("no secretbox");
  const bytes = Buffer.from(event.content, "base64");
  const plain = nacl.secretbox.open(bytes.subarray(24), bytes.subarray(0, 24), box);
  if (plain === null) throw new Error("the secretbox does not open");
  return new TextDecoder("utf-8", { fatal: true }).decode(plain);
}

function read(event) {
  if (event.pubkey !== own) throw new Error("by somebody else");
  if (!verifyEvent(event)) throw new Error("id or signature do not verify");
  const tags = Object.fromEntries(event.tags.map(([name, value]) => [name, value]));
  if (event.kind === 5) return { kind: 5, d: null, body: null, hash: null };
  const text = opened(event, tags);
  const hash = createHash("sha256").update(text, "utf8").digest("hex");
  return { kind: event.kind, d: tags.d, body: JSON.parse(text), hash };
}

const said = events.map((event) => {
  try {
    return read(event);
  } catch (error) {
    return { error: String(error.message ?? error) };
  }
});
process.stdout.write(JSON.stringify(said));
