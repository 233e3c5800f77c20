"""How many deployments an emulated AWS gets right: templates and CDK apps deployed, wrong deployments refused."""
