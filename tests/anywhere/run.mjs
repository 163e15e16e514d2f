// Runs a WebAssembly file of the checks: `node run.mjs FILE`. Prints what they say; exit code 1 if one fails.

import { readFile } from 'node:fs/promises';
import { argv, exit } from 'node:process';
import { fileURLToPath } from 'node:url';
import { Worker, isMainThread, workerData } from 'node:worker_threads';

// The number of workers where there are threads: more than the one that a system without a number of CPUs has.
const WORKERS = '3';

// What the linker gives such a program, in pages of 64 KiB.
const PAGES = { initial: 256, maximum: 16384, shared: true };

// A module for a host alone: nothing is imported, and nothing may be.
async function runModule(module) {
  const { exports } = await WebAssembly.instantiate(module, {});
  const said = () => {
    const bytes = new Uint8Array(exports.memory.buffer, exports.said(), exports.said_bytes());
    return new TextDecoder().decode(bytes);
  };
  try {
    exports.check();
  } catch (error) {
    console.error(`${error}\n${said()}`);
    return 1;
  }
  console.log(`${said()}\nok`);
  return 0;
}

// `getImportObject`, which node 18 lacks.
function importsOf(wasi) {
  return { wasi_snapshot_preview1: wasi.wasiImport };
}

// A program for WASI.
async function runProgram(module) {
  const { WASI } = await import('node:wasi');
  const wasi = new WASI({ version: 'preview1', returnOnExit: true });
  return wasi.start(await WebAssembly.instantiate(module, importsOf(wasi)));
}

// The imports of a program for WASI with threads. A new thread is a worker of node's, with the same module on
// the same memory.
async function withThreads(shared) {
  const { WASI } = await import('node:wasi');
  const wasi = new WASI({ version: 'preview1', returnOnExit: true, env: { PACELINE_WORKERS: WORKERS } });
  const spawn = (argument) => {
    const thread = Atomics.add(shared.threads, 0, 1) + 1;
    new Worker(fileURLToPath(import.meta.url), { workerData: { shared, thread, argument } });
    return thread;
  };
  const imports = {
    ...importsOf(wasi),
    env: { memory: shared.memory },
    wasi: { 'thread-spawn': spawn },
  };
  return { wasi, instance: await WebAssembly.instantiate(shared.module, imports) };
}

async function runProgramWithThreads(module) {
  const threads = new Int32Array(new SharedArrayBuffer(4));
  const { wasi, instance } = await withThreads({ module, threads, memory: new WebAssembly.Memory(PAGES) });
  return wasi.start(instance);
}

async function runThread({ shared, thread, argument }) {
  const { wasi, instance } = await withThreads(shared);
  // It only has to know the memory: the program was started already.
  wasi.initialize({ exports: { memory: shared.memory } });
  instance.exports.wasi_thread_start(thread, argument);
}

async function run(file) {
  const module = await WebAssembly.compile(await readFile(file));
  const imports = WebAssembly.Module.imports(module);
  if (imports.length === 0) {
    return runModule(module);
  }
  const hasThreads = imports.some((needed) => needed.name === 'thread-spawn');
  return hasThreads ? runProgramWithThreads(module) : runProgram(module);
}

if (isMainThread) {
  exit(await run(argv[2]));
} else {
  await runThread(workerData);
}
