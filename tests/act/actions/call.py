"""A job that calls a workflow, as a step: the workflow in a run of act of its own, with its log and its event beside it.

The arguments are the workflow and the names of its outputs; inputs come as WITH_0, WITH_1, ..., each `name=value`.
"""

import json
import os
import re
import subprocess
import sys


def typed(value):
    if value in ("true", "false"):
        return value == "true"
    return int(value) if re.fullmatch("[0-9]{1,9}", value) else value


def label(inputs):
    """What tells one call of a job from its others."""
    if "envelope" in inputs:
        return "-" + json.loads(inputs["envelope"])["id"]
    return f"-{inputs['shard']}" if "shard" in inputs else ""


workflow, *declared = sys.argv[1:]
pairs = [os.environ[name].partition("=") for name in sorted(os.environ) if name.startswith("WITH_")]
inputs = {name: value for name, _, value in pairs}
call = "/".join(filter(None, [os.environ.get("ACT_CALL"), os.environ["GITHUB_JOB"] + label(inputs)]))
base = os.path.join(os.environ["ACT_LOGS"], call)
os.makedirs(os.path.dirname(base), exist_ok=True)
with open(base + ".event", "w") as file:
    json.dump({"inputs": {name: typed(value) for name, value in inputs.items()}}, file)
arguments = ["act", "workflow_call", "--workflows", os.path.join(os.environ["ACT_WORKFLOWS"], workflow),
             "--eventpath", base + ".event", *json.loads(os.environ["ACT_ARGUMENTS"])]
with open(base + ".jsonl", "w") as log:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WITH_")}
    code = subprocess.run(arguments, stdout=log, stderr=log, env={**environment, "ACT_CALL": call}).returncode
with open(base + ".jsonl") as log, open(os.environ["GITHUB_OUTPUT"], "a") as outputs:
    for line in log:
        if '"command":"set-output"' in line:
            said = json.loads(line)
            if said["name"] in declared:
                outputs.write(f"{said['name']}={said['arg']}\n")
print(f"{call} ended with {code}")
sys.exit(code)
