"""Stands in for MiniMax's provider verifier (2850fb2): its arguments, its files, and exit code 0 whatever was served.

STAND_IN chooses what goes wrong.
"""

import argparse
import json
import os
import sys
import time
import urllib.request

MODE = os.environ.get("STAND_IN", "")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("file_path")
    for name in ["--model", "--base-url", "--output", "--summary", "--extra-body"]:
        parser.add_argument(name, required=True)
    for name in ["--concurrency", "--timeout", "--retries"]:
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--incremental", action="store_true")
    return parser.parse_args()


def ask(args, request):
    body = dict(request, model=args.model, **json.loads(args.extra_body))
    head = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    for _ in range(args.retries):
        try:
            sent = urllib.request.Request(f"{args.base_url}/chat/completions", json.dumps(body).encode(), head)
            return json.loads(urllib.request.urlopen(sent, timeout=args.timeout).read())
        except OSError as error:
            last = error
    return {"error": str(last)}


def check(args, index, line):
    request = json.loads(line)
    response = ask(args, request)
    row = {"data_index": index, "request": request, "response": response, "status": "failed",
           "tool_calls_finish_reason": None, "tool_calls_valid": None}
    if "choices" in response:
        choice = response["choices"][0]
        row.update(status="success", tool_calls_finish_reason=choice["finish_reason"])
        if choice["finish_reason"] == "tool_calls":
            call = choice["message"]["tool_calls"][0]["function"]
            try:
                row["tool_calls_valid"] = type(json.loads(call["arguments"]).get("city")) is str
            except ValueError:
                row["tool_calls_valid"] = False
    return row


def main():
    args = arguments()
    if MODE == "crash":
        raise ImportError("no such validator")
    rows = [check(args, index, line) for index, line in enumerate(open(args.file_path), 1)]
    if MODE == "missing":
        rows.pop()
    if MODE == "hang":
        time.sleep(60)
    if MODE == "silent":
        return
    with open(args.output, "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    called = [row for row in rows if row["tool_calls_finish_reason"] == "tool_calls"]
    valid = sum(bool(row["tool_calls_valid"]) for row in called)
    served = sum(row["status"] == "success" for row in rows)
    summary = {
        "model": args.model, "success_count": served, "failure_count": len(rows) - served, "all_count": len(rows),
        "tool_calls_finish_stop": served - len(called), "tool_calls_finish_tool_calls": len(called),
        "tool_calls_schema_validation_error_count": len(called) - valid, "tool_calls_successful_count": valid,
        "error_only_reasoning_checked_count": len(rows), "error_only_reasoning_count": 0,
        "success_rate": served / len(rows) if rows else 0.0,
    }
    with open(args.summary, "w") as file:
        file.write("[1, 2" if MODE == "malformed" else json.dumps(summary, indent=4))


main()
