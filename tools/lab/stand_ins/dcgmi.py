#!/usr/bin/python3
"""dcgmi diag, as DCGM 4 prints it in JSON: every test passes."""

import json

TESTS = ("software", "pcie", "memory")

results = [{"name": name, "test_summary": {"status": "Pass"}, "results": [{"status": "Pass"}]} for name in TESTS]
print(json.dumps({"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": results}]}}))
