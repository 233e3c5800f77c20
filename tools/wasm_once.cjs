"use strict";

// The CDK validates templates with WebAssembly. V8 compiles it quickly, then again with optimisations, which takes
// longer than one synthesis gains from it.
const v8 = require("node:v8");
v8.setFlagsFromString("--no-wasm-tier-up");
v8.setFlagsFromString("--no-wasm-dynamic-tiering");
