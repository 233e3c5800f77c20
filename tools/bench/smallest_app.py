"""The smallest app that the CDK accepts, as a baseline for synthesis."""

from aws_cdk import App, CfnWaitConditionHandle, Stack

app = App()
# The validation of our app rejects a template without resources.
CfnWaitConditionHandle(Stack(app, "Empty"), "Nothing")
app.synth()
