"""A stand-in for the harness of swebench 4.1.0, which needs a Docker daemon: its arguments, its files, its exit codes.

It takes and refuses the arguments of the real one, refuses predictions of unknown instances as that does, and writes the
same report. An instance counts as resolved where its patch adds and removes what the data set's own patch does. STAND_IN
says what goes wrong.
"""

import argparse
import json
import os
import pathlib
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("-d", "--dataset_name", default="SWE-bench/SWE-bench_Lite")
parser.add_argument("-s", "--split", default="test")
parser.add_argument("-i", "--instance_ids", nargs="+")
parser.add_argument("-p", "--predictions_path", required=True)
parser.add_argument("--max_workers", type=int, default=4)
parser.add_argument("-t", "--timeout", type=int, default=1800)
parser.add_argument("-id", "--run_id", required=True)
parser.add_argument("-n", "--namespace", default="swebench")
parser.add_argument("--modal", choices=["true", "false"], default="false")
args = parser.parse_args()
fault = os.environ.get("STAND_IN", "")
print("arguments", json.dumps(vars(args)), flush=True)
for secret in ("MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"):
    assert secret not in os.environ, secret
if fault == "crash":
    sys.exit("docker.errors.DockerException: Error while fetching server API version")
if fault == "hang":
    time.sleep(600)

rows = {}
for line in (pathlib.Path(args.dataset_name) / f"{args.split}.jsonl").read_text().splitlines():
    row = json.loads(line)
    rows[row["instance_id"]] = row
predictions = [json.loads(line) for line in pathlib.Path(args.predictions_path).read_text().splitlines()]
predictions = {row["instance_id"]: row for row in predictions}
if unknown := set(predictions) - set(rows):
    raise ValueError(f"Some prediction IDs not found in dataset!\nMissing IDs:\n{' '.join(sorted(unknown))}")


def changes(patch):
    lines = [line for line in patch.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return sorted(lines)


found = {"completed": set(), "resolved": set(), "unresolved": set(), "error": set(), "empty_patch": set()}
for name, prediction in predictions.items():
    patch = prediction["model_patch"]
    logs = pathlib.Path("logs/run_evaluation") / args.run_id / prediction["model_name_or_path"].replace("/", "__") / name
    if not patch:
        found["empty_patch"].add(name)
        continue
    logs.mkdir(parents=True)
    if fault == "unscored" or not patch.startswith("diff --git"):
        said = "Error building image" if fault == "unscored" else ">>>>> Patch Apply Failed:\nno valid patches in input"
        (logs / "run_instance.log").write_text(said + "\n")
        found["error"].add(name)
        continue
    (logs / "run_instance.log").write_text("Grading answer\n")
    found["completed"].add(name)
    found["resolved" if changes(patch) == changes(rows[name]["patch"]) else "unresolved"].add(name)

report = {"total_instances": len(rows), "submitted_instances": len(predictions)}
report |= {f"{kind}_instances": len(names) for kind, names in found.items()}
report |= {f"{kind}_ids": sorted(names) for kind, names in found.items()}
report |= {"submitted_ids": sorted(predictions), "incomplete_ids": sorted(set(rows) - set(predictions)), "schema_version": 2}
if fault == "missing":
    report["submitted_ids"] = []
model = next(iter(predictions.values()))["model_name_or_path"].replace("/", "__")
text = json.dumps(report, indent=4)
pathlib.Path(f"{model}.{args.run_id}.json").write_text(text[: len(text) // 2] if fault == "malformed" else text)
