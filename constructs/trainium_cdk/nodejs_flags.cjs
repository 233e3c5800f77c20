"use strict";

// The validation of templates is WebAssembly. V8 would compile what runs often in it anew, optimised, beside the
// synthesis, and Node.js waits at its end for what has begun: longer than the optimised code can save.
const v8 = require("node:v8");
v8.setFlagsFromString("--no-wasm-tier-up");
v8.setFlagsFromString("--no-wasm-dynamic-tiering");
