// Runs queries in Perfetto's trace processor, compiled to WebAssembly, and prints their rows.
//
//   node oracle.mjs FOLDER TRACE QUERY…
//
// FOLDER holds engine_bundle.js and trace_processor.wasm, as Perfetto's user interface has them. Each row is
// printed as its values with tabs between; an empty line ends each query's.
//
// The engine expects to be a web worker. So it is given what it looks for there and no more, and is then
// spoken to as the user interface speaks to it: one stream of length-delimited messages each way
// (protos/perfetto/trace_processor/trace_processor.proto).
import fs from 'node:fs';
import path from 'node:path';

const [folder, trace, ...queries] = process.argv.slice(2);
const fail = (why) => {
  console.error(`oracle: ${why}`);
  process.exit(1);
};

// Protobuf, as much of it as is needed.
const varint = (value) => {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 0x80n) return Uint8Array.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
};
const join = (...parts) => Uint8Array.from(Buffer.concat(parts));
const number = (field, value) => join(varint(field << 3), varint(value));
const block = (field, bytes) => join(varint((field << 3) | 2), varint(bytes.length), bytes);

function* fields(bytes) {
  let at = 0;
  const next = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(next());
    const field = key >> 3;
    if ((key & 7) === 0) yield [field, next()];
    else if ((key & 7) === 1) yield [field, bytes.subarray(at, (at += 8))];
    else if ((key & 7) === 5) yield [field, bytes.subarray(at, (at += 4))];
    else {
      const length = Number(next());
      yield [field, bytes.subarray(at, (at += length))];
    }
  }
}
const text = (bytes) => Buffer.from(bytes).toString();
const packed = (bytes) => {
  const wrapped = [];
  for (let at = 0; at < bytes.length; ) {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    wrapped.push(BigInt.asIntN(64, value));
  }
  return wrapped;
};

// The worker's world.
class FileRequest {
  open(_, url) {
    this.file = path.join(folder, path.basename(url));
  }
  setRequestHeader() {}
  send() {
    const bytes = fs.readFileSync(this.file);
    this.status = 200;
    this.readyState = 4;
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    this.onload?.();
  }
}
class WorkerGlobalScope {}
const self = { location: { href: 'http://localhost/engine_bundle.js' }, XMLHttpRequest: FileRequest };
self.self = self;
const quiet = Object.fromEntries(
  ['log', 'info', 'debug', 'warn', 'error', 'assert', 'trace'].map((name) => [
    name,
    (...words) => process.env.ORACLE_VERBOSE && console.error(...words),
  ]),
);
const engine = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
const globals = {
  process: undefined,
  require: undefined,
  module: undefined,
  exports: undefined,
  self,
  window: undefined,
  WorkerGlobalScope,
  importScripts: () => {},
  location: self.location,
  XMLHttpRequest: FileRequest,
  console: quiet,
};
new Function(...Object.keys(globals), engine)(...Object.values(globals));

// The conversation.
let waiting;
let answers = Buffer.alloc(0);
const port = {
  postMessage(bytes) {
    answers = Buffer.concat([answers, Buffer.from(bytes)]);
    for (;;) {
      // Each is field 1 of the stream, whole only when all its bytes are there.
      let length = 0;
      let at = 1;
      for (let shift = 0; at < answers.length; shift += 7) {
        const byte = answers[at++];
        length += (byte & 0x7f) * 2 ** shift;
        if (byte < 0x80) break;
      }
      if (answers.length < 2 || answers.length < at + length) return;
      const answer = answers.subarray(at, at + length);
      answers = answers.subarray(at + length);
      waiting?.(answer);
    }
  },
};
self.onmessage({ data: port });
await new Promise((go) => setTimeout(go, 200));

let sequence = 0;
function ask(method, argument, onAnswer) {
  const limit = setTimeout(() => fail('the trace processor does not answer'), 60_000);
  return new Promise((done) => {
    waiting = (answer) => {
      for (const [field, value] of fields(answer)) {
        if (field === 5) fail(text(value));
      }
      if (onAnswer(answer)) {
        clearTimeout(limit);
        done();
      }
    };
    const request = join(number(1, ++sequence), number(2, method), argument);
    port.onmessage({ data: block(1, request) });
  });
}

async function query(sql) {
  let columns = [];
  let row = [];
  await ask(3, block(103, block(1, Buffer.from(sql))), (answer) => {
    let last = false;
    for (const [field, result] of fields(answer)) {
      if (field !== 203) continue;
      for (const [inner, value] of fields(result)) {
        if (inner === 1) columns.push(text(value));
        if (inner === 2 && value.length > 0) fail(`${text(value)}\nin: ${sql}`);
        if (inner !== 3) continue;
        let [kinds, numbers, strings, floats] = [[], [], [], []];
        for (const [cell, bytes] of fields(value)) {
          if (cell === 1) kinds = packed(bytes);
          if (cell === 2) numbers = packed(bytes);
          if (cell === 3) floats = [...new Float64Array(Uint8Array.from(bytes).buffer)];
          if (cell === 5) strings = text(bytes).split('\0');
          if (cell === 6) last = bytes !== 0n;
        }
        for (const kind of kinds) {
          const cell = { 1: () => 'NULL', 2: () => numbers.shift(), 3: () => floats.shift(), 4: () => strings.shift() };
          row.push(cell[Number(kind)]?.() ?? '?');
          if (row.length === columns.length) {
            console.log(row.join('\t'));
            row = [];
          }
        }
      }
    }
    return last;
  });
  console.log('');
}

const bytes = fs.readFileSync(trace);
const PIECE = 16 << 20;
for (let at = 0; at < bytes.length; at += PIECE) {
  await ask(1, block(101, bytes.subarray(at, at + PIECE)), (answer) => {
    for (const [field, result] of fields(answer)) {
      if (field !== 201) continue;
      for (const [inner, value] of fields(result)) if (inner === 2) fail(text(value));
    }
    return true;
  });
}
await ask(2, new Uint8Array(), () => true);
for (const sql of queries) await query(sql);
process.exit(0);
