// Runs inside the process of one Lambda invocation for Node.js: event on stdin, the handler's result into a file.
"use strict";
const fs = require("fs");
const http = require("http");
const https = require("https");
const path = require("path");
const { pathToFileURL } = require("url");

function taken(name) {
  const value = process.env[name];
  delete process.env[name];
  return value;
}

const ahead = Number(taken("TRN_LAMBDA_CLOCK_AHEAD")) * 1000;
if (ahead) {
  const machinesTime = Date.now;
  Date.now = () => machinesTime() + ahead; // what `new Date()` says is not changed by this
}
const result = taken("TRN_LAMBDA_RESULT");
const deadline = Date.now() + Number(taken("TRN_LAMBDA_TIMEOUT")) * 1000;
const root = process.env.LAMBDA_TASK_ROOT;

// Handlers answer a ResponseURL by its host and path alone, with TLS at port 443, whatever the URL says.
const endpoint = new URL(process.env.AWS_ENDPOINT_URL);
const request = https.request;
https.request = (options, ...rest) =>
  options.hostname === endpoint.hostname || options.host === endpoint.hostname
    ? http.request({ ...options, protocol: "http:", port: endpoint.port, agent: undefined }, ...rest)
    : request(options, ...rest);

function end(payload, failed) {
  fs.writeFileSync(result, JSON.stringify({ payload: JSON.stringify(payload === undefined ? null : payload), failed }));
  process.exit();
}

function fail(error) {
  console.error(error);
  const { message, name, stack } = error instanceof Error ? error : new Error(String(error));
  const sdk = message.includes("@aws-sdk/") ? " (the embedded AWS has no AWS SDK for JavaScript: pack it into the function)" : "";
  end({ errorMessage: message + sdk, errorType: name, trace: String(stack).split("\n") }, true);
}

async function handlerOf() {
  const [, file, names] = /^(.*?[^/]*?)\.([^/]*)$/.exec(process.env._HANDLER);
  const found = [".js", ".mjs", ".cjs"].map((ending) => path.join(root, file + ending)).find(fs.existsSync);
  if (!found) throw Object.assign(new Error(`Cannot find module '${file}'`), { name: "Runtime.ImportModuleError" });
  const module = found.endsWith(".mjs") ? await import(pathToFileURL(found)) : await required(found);
  const handler = names.split(".").reduce((part, name) => part && part[name], module);
  if (!handler) throw Object.assign(new Error(`${process.env._HANDLER} is undefined or not exported`), { name: "Runtime.HandlerNotFound" });
  return handler;
}

async function required(file) {
  try {
    return require(file);
  } catch (error) {
    if (error.code !== "ERR_REQUIRE_ESM") throw error;
    return import(pathToFileURL(file));
  }
}

const context = {
  functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
  functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
  memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
  logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
  logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
  invokedFunctionArn: taken("TRN_LAMBDA_ARN"),
  awsRequestId: taken("TRN_LAMBDA_REQUEST_ID"),
  callbackWaitsForEmptyEventLoop: true,
  getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()),
  done: (error, value) => (error ? fail(error) : end(value, false)),
  succeed: (value) => end(value, false),
  fail,
};

process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);
process.on("beforeExit", () => end(null, false)); // nobody called back: Lambda answers null
handlerOf()
  .then((handler) => handler(JSON.parse(fs.readFileSync(0, "utf8")), context, context.done))
  .then((value) => value === undefined || end(value, false), fail);
