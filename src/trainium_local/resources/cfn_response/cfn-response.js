// The module that CloudFormation puts beside a function's source in a template: a custom resource answers with it.
exports.SUCCESS = "SUCCESS";
exports.FAILED = "FAILED";

exports.send = (event, context, responseStatus, responseData, physicalResourceId, noEcho) =>
  new Promise((resolve) => {
    const body = JSON.stringify({
      Status: responseStatus,
      Reason: `See the details in CloudWatch Log Stream: ${context.logStreamName}`,
      PhysicalResourceId: physicalResourceId || context.logStreamName,
      StackId: event.StackId,
      RequestId: event.RequestId,
      LogicalResourceId: event.LogicalResourceId,
      NoEcho: noEcho || false,
      Data: responseData,
    });
    const url = new URL(event.ResponseURL);
    const end = () => resolve(context.done());
    const headers = { "content-type": "", "content-length": Buffer.byteLength(body) };
    const request = require(url.protocol.slice(0, -1)).request(url, { method: "PUT", headers }, end);
    request.on("error", (error) => end(console.log("send(..) failed executing request:", error)));
    request.end(body);
  });
