// Pushes XML into a pump and reads what comes back, with nothing but Node's own modules.
//
//     node examples/push.mjs 127.0.0.1:8765

import { connect } from "node:net";

const CALCULATE = "https://xml-pipeline.org/ns/calculate/v1";
const ENVELOPE = "https://xml-pipeline.org/ns/envelope/v1";

/** A connection that speaks in lengths: four bytes before each message, both ways. */
class Pump {
  constructor(address) {
    const [, host, port] = address.match(/^(.*):(\d+)$/);
    this.socket = connect(Number(port), host);
    this.bytes = this.socket[Symbol.asyncIterator]();
    this.rest = Buffer.alloc(0);
  }

  /** Sends a payload: into a thread, under an id of ours, or neither. */
  push(payload, { thread, id } = {}) {
    const meta = [["thread", thread], ["id", id]]
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `<${name}>${escape(value)}</${name}>`);
    const message = `<message xmlns="${ENVELOPE}"><meta>${meta.join("")}</meta>${payload}</message>`;
    const data = Buffer.from(message);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    this.socket.write(Buffer.concat([length, data]));
  }

  /** The next payload, and who sent it. */
  async receive() {
    const length = (await this.exactly(4)).readUInt32BE();
    const [meta, payload] = read((await this.exactly(length)).toString()).children;
    return { payload, from: child(meta, "from").text };
  }

  async exactly(length) {
    while (this.rest.length < length) {
      const { value, done } = await this.bytes.next();
      if (done) throw new Error("the pump ended the connection");
      this.rest = Buffer.concat([this.rest, value]);
    }
    const data = this.rest.subarray(0, length);
    this.rest = this.rest.subarray(length);
    return data;
  }
}

/**
 * What the pump sends is canonical: start tags, end tags and text, double quotes, no comments.
 * So a reader of it is short. Names keep their prefixes; the pump's own have none.
 */
function read(text) {
  const top = { children: [], text: "" };
  const open = [top];
  for (const [, end, name, attributes, between] of text.matchAll(
    /<(\/?)([^\s>]+)((?:\s[^\s=]+="[^"]*")*)>([^<]*)/g,
  )) {
    if (end) open.pop();
    else {
      const element = { name, attributes: {}, children: [], text: "" };
      for (const [, key, value] of attributes.matchAll(/([^\s=]+)="([^"]*)"/g)) {
        element.attributes[key] = unescape(value);
      }
      open.at(-1).children.push(element);
      open.push(element);
    }
    open.at(-1).text += unescape(between);
  }
  return top.children[0];
}

const child = (element, name) => element.children.find((it) => it.name === name);
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"' };
const escape = (text) => text.replace(/[&<]/g, (it) => (it === "&" ? "&amp;" : "&lt;"));
const unescape = (text) =>
  text.replace(/&(?:#x([0-9A-F]+)|(\w+));/g, (_, code, name) =>
    code ? String.fromCodePoint(parseInt(code, 16)) : ENTITIES[name],
  );
const calculate = (expression) =>
  `<calculate xmlns="${CALCULATE}"><expression>${escape(expression)}</expression></calculate>`;

const pump = new Pump(process.argv[2] ?? "127.0.0.1:8765");

// Each push is answered by <accepted>, or by <huh> where it is refused.
pump.push(calculate("6*7"));
const { thread } = (await pump.receive()).payload.attributes;
const { payload: answer, from } = await pump.receive();
console.log(`6*7 is ${child(answer, "value").text}, says ${from}`);

// Into the same thread, under an id of ours, twice: it happens once.
for (let time = 0; time < 2; time += 1) {
  pump.push(calculate("2^10"), { thread, id: `${thread}-power` });
}
const came = [await pump.receive(), await pump.receive(), await pump.receive()];
const accepted = came.map((it) => it.payload).filter((it) => it.name === "accepted");
console.log(`twice is once: ${accepted[0].attributes.seq === accepted[1].attributes.seq}`);

// What is wrong comes back with a number, a place and advice.
pump.push(`<calculate xmlns="${CALCULATE}"/>`);
const { payload: huh } = await pump.receive();
console.log(`refused: ${huh.attributes.code}, ${child(huh, "advice").text}`);

pump.socket.end();
