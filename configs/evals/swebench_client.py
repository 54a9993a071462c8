"""Solves SWE-bench's instances against a chat completions endpoint, and has the official harness score the patches.

Patches come from mini-swe-agent (`agentic`) or from one request an instance (`single-shot`). What runs here are the
pinned packages. Their faults are repaired without a change to what is installed: the agent's by classes put in place
of its own in this process, the scorer's on Modal in a copy of its source. Each repair first looks for what it
repairs, and refuses another version.

The phases run as processes of their own, so that each has its deadline:
  solve   preds.json and statuses.json in the work folder
  score   a report in the work folder
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

AGENT, SCORER = ("mini-swe-agent", "2.4.6"), ("swebench", "4.1.0")
# The model's own ends: its patch counts, and where it submitted none, what it had changed by then.
SUBMITTED = "Submitted"
BUDGET = {"LimitsExceeded", "TimeExceeded", "RepeatedFormatError", "ContextWindowExceeded"}
# What the harness's logs say where a patch, and not the harness, is at fault.
OWN_FAULTS = (">>>>> Patch Apply Failed", "Test timed out after", ">>>>> Tests Timed Out")
PROMPT = (
    "Fix the issue of a repository that is described below. Answer with one unified diff against the repository's "
    "root, in a ```diff block, that `git apply` accepts, and with nothing else.\n\nRepository: {repo}\n\n{problem}\n"
)
ADVICE = """

Before you submit, run the tests that cover the issue. You have {steps} steps in all: submit before they run out.
Where the package does not build after a few attempts, submit the change to its source all the same.
"""


def knob(name, default, kind=str, least=None):
    """A setting of the environment; empty is unset."""
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    try:
        value = kind(text)
    except ValueError:
        sys.exit(f"{name}: `{text}` is no {'number' if kind in (int, float) else kind.__name__}")
    if least is not None and value < least:
        sys.exit(f"{name}: `{text}` is under {least}")
    return value


def flag(name):
    text = os.environ.get(name, "").strip().lower()
    if text not in ("", "0", "1", "true", "false"):
        sys.exit(f"{name}: `{text}` is neither true nor false")
    return text in ("1", "true")


def choice(name, choices):
    value = knob(name, choices[0])
    if value not in choices:
        sys.exit(f"{name}: `{value}` is none of {', '.join(choices)}")
    return value


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--dataset", required=True, help="a name on the hub, or a folder")
    parser.add_argument("--split", default="test")
    parser.add_argument("--first", type=int, default=0, help="the first instances [default: 0, all]")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--phase", choices=["all", "solve", "score"], default="all", help=argparse.SUPPRESS)
    args = parser.parse_args()
    asked = knob("SWEBENCH_DATASET", args.dataset)
    if asked != args.dataset:
        sys.exit(
            f"SWEBENCH_DATASET is `{asked}`, and the suite's data set is `{args.dataset}`: patches and scores must be of "
            "the same one; unset it, or add a suite with that data set"
        )
    args.work, args.out = args.work.resolve(), args.out.resolve()
    args.mode = choice("SWEBENCH_GEN_MODE", ["agentic", "single-shot"])
    args.environment = choice("SWEBENCH_AGENT_ENVIRONMENT", ["swerex_modal", "docker", "local"])
    args.on_modal = flag("SWEBENCH_USE_MODAL")
    args.only_solve = flag("SWEBENCH_SKIP_SCORE")
    args.workers = knob("SWEBENCH_AGENT_WORKERS", args.concurrency, int, 1)
    args.solve_seconds = knob("SWEBENCH_AGENT_TIMEOUT", 6 * 3600, float, 1)
    args.score_seconds = knob("SWEBENCH_SCORE_TIMEOUT", 7200, float, 1)
    return args


def write(path, value):
    """Whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=2) + "\n")
    part.replace(path)


def pinned(package):
    from importlib.metadata import version

    name, wanted = package
    if (found := version(name)) != wanted:
        raise SystemExit(f"{name} is {found}: what is repaired of it here was read in {wanted}")


# Modal's credentials


@contextlib.contextmanager
def modal_credentials(needed):
    """Hands Modal its tokens in a file of this user's alone, and takes them out of the environment, which what a model
    has run could read."""
    tokens = [re.sub(r"[\s\"']", "", os.environ.pop(name, "")) for name in ("MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET")]
    own = pathlib.Path(os.environ.get("MODAL_CONFIG_PATH") or pathlib.Path.home() / ".modal.toml")
    if not needed or own.is_file():
        yield
        return
    if not all(re.fullmatch(r"[A-Za-z0-9_.-]+", token) for token in tokens):
        sys.exit(f"Modal is not set up: set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or write {own}")
    descriptor, path = tempfile.mkstemp(prefix="sweepctl-modal-", suffix=".toml")  # mode 600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write('[default]\ntoken_id = "{}"\ntoken_secret = "{}"\nactive = true\n'.format(*tokens))
        os.environ["MODAL_CONFIG_PATH"] = path
        yield
    finally:
        os.environ.pop("MODAL_CONFIG_PATH", None)
        os.unlink(path)


# Solving


def dataset(args):
    if not pathlib.Path(args.dataset).exists():
        home = pathlib.Path(os.environ.get("HF_HOME") or pathlib.Path.home() / ".cache/huggingface")
        hub = pathlib.Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
        if not (hub / f"datasets--{args.dataset.replace('/', '--')}").is_dir():
            for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
                os.environ.pop(name, None)
    from datasets import load_dataset

    try:
        rows = list(load_dataset(args.dataset, split=args.split))
    except Exception as error:  # the hub, the network, the disk, or another split
        sys.exit(
            f"the data set `{args.dataset}` has no split `{args.split}` here: {type(error).__name__}: {error}\nLet this machine "
            "reach the hub once, or bring a cache that holds it, and name that in HF_HOME."
        )
    return rows[: args.first] if args.first else rows


class Statuses:
    """How each instance ended, written whenever one does."""

    def __init__(self, path):
        self.path, self.all, self.lock = path, {}, threading.Lock()

    def end(self, instance, status):
        with self.lock:
            self.all[instance] = str(status)
            write(self.path, self.all)


def sandboxes():
    """Modal's sandboxes, as the agent's environment starts them, with three faults of swe-rex 1.4.0 repaired: `stop`
    terminates only what had ended already, a sandbox whose start fails is left behind, and commands are run with the
    closed standard input of the server."""
    import modal
    from minisweagent.environments.extra import swerex_modal
    from swerex.deployment.modal import ModalDeployment

    pinned(("swe-rex", "1.4.0"))
    app = knob("SWEBENCH_MODAL_APP_NAME", "infx-evals-swe")

    class Deployment(ModalDeployment):
        def __init__(self, **named):
            super().__init__(**named)
            self._app = modal.App.lookup(app, create_if_missing=True)

        async def start(self):
            try:
                await super().start()
            except BaseException:
                await self.stop()
                raise

        async def stop(self):
            sandbox = self._sandbox
            try:
                await super().stop()
            finally:
                if sandbox is not None:
                    await sandbox.terminate.aio()

    execute = swerex_modal.SwerexModalEnvironment.execute

    def without_input(self, action, *positional, **named):
        return execute(self, {**action, "command": "exec </dev/null\n" + action.get("command", "")}, *positional, **named)

    swerex_modal.ModalDeployment = Deployment
    swerex_modal.SwerexModalEnvironment.execute = without_input


def agent_class(base):
    """An agent that hands in what it had changed when its budget ran out; 2.4.6 hands in nothing then."""
    import litellm

    class Agent(base):
        def run(self, task="", **named):
            try:
                info = super().run(task, **named)
            except litellm.exceptions.ContextWindowExceededError:
                info = {"exit_status": "ContextWindowExceeded", "submission": ""}
            if info.get("exit_status") in BUDGET and not info.get("submission"):
                # Of tracked files: scripts that it wrote on the way are no part of a fix.
                diff = self.env.execute({"command": "git --no-pager diff HEAD"})
                if diff["returncode"] == 0 and diff["output"].startswith("diff --git "):
                    info = {**info, "submission": diff["output"]}
            return info

    return Agent


def overrides(args):
    environment = {
        "timeout": knob("SWEBENCH_AGENT_CMD_TIMEOUT", 300, int, 1),
        "cwd": knob("SWEBENCH_AGENT_CWD", "/testbed"),
    }
    if args.environment == "swerex_modal":
        alive = knob("SWEBENCH_AGENT_RUNTIME_TIMEOUT", 3600.0, float, 1)
        environment["startup_timeout"] = knob("SWEBENCH_AGENT_STARTUP_TIMEOUT", 900.0, float, 1)
        environment["runtime_timeout"] = environment["deployment_timeout"] = alive
        if cpu := knob("SWEBENCH_AGENT_SANDBOX_CPU", None, float, 0.1):
            environment["modal_sandbox_kwargs"] = {"cpu": cpu}
    return {
        "agent": {"step_limit": knob("SWEBENCH_AGENT_STEP_LIMIT", 250, int, 1), "cost_limit": 0.0},
        "environment": environment,
        "model": {
            "cost_tracking": "ignore_errors",
            "model_kwargs": {"api_base": args.base_url, "temperature": 0.0, "timeout": 1800},
        },
    }


def solve_agentic(args, statuses):
    os.environ["MSWEA_GLOBAL_CONFIG_DIR"] = str(args.work / "mini-swe-agent")
    os.environ["MSWEA_SILENT_STARTUP"] = os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"
    # Not in the environment, which what the model has run inherits, nor in the settings, which trajectories hold.
    key = os.environ.pop("OPENAI_API_KEY", "") or "EMPTY"
    pinned(AGENT)
    import inspect

    import litellm
    import yaml
    from minisweagent.run.benchmarks import swebench

    dataset(args)  # which says what is wrong with it; the agent's program says it by a traceback
    litellm.api_key = key
    litellm.suppress_debug_info = True
    source = inspect.getsource(swebench.process_instance)
    for anchor in ("env = get_sb_environment(config, instance)", "agent = ProgressTrackingAgent(", "except Exception as e:"):
        if source.count(anchor) != 1:
            raise SystemExit(f"mini-swe-agent's process_instance does not hold `{anchor}` once: it cannot be repaired")
    if args.environment == "swerex_modal":
        sandboxes()
    environments, process, get = set(), swebench.process_instance, swebench.get_sb_environment
    own = threading.local()

    def stop(environment):
        environments.discard(environment)
        end = getattr(environment, "stop", None) or getattr(environment, "cleanup", None)
        if end is not None:
            end()

    def get_and_remember(config, instance):
        own.environment = get(config, instance)
        environments.add(own.environment)
        return own.environment

    def process_and_stop(*positional, **named):
        own.environment = None
        try:
            return process(*positional, **named)
        finally:
            if own.environment is not None:
                stop(own.environment)

    class Progress(swebench.RunBatchProgressManager):
        def on_instance_end(self, instance_id, exit_status):
            statuses.end(instance_id, exit_status)
            super().on_instance_end(instance_id, exit_status)

    def stop_all(*_):
        for environment in list(environments):
            stop(environment)
        os._exit(1)

    signal.signal(signal.SIGTERM, stop_all)
    swebench.get_sb_environment, swebench.process_instance = get_and_remember, process_and_stop
    swebench.RunBatchProgressManager = Progress
    swebench.ProgressTrackingAgent = agent_class(swebench.ProgressTrackingAgent)
    config = overrides(args)
    template = yaml.safe_load(swebench.DEFAULT_CONFIG_FILE.read_text())["agent"]["instance_template"]
    config["agent"]["instance_template"] = template.rstrip() + ADVICE.format(steps=config["agent"]["step_limit"])
    file = args.work / "overrides.yaml"
    file.write_text(yaml.safe_dump(config))
    swebench.main(
        subset=args.dataset, split=args.split, slice_spec=f"0:{args.first}" if args.first else "", filter_spec="",
        shuffle=False, output=str(args.work / "agent"), workers=args.workers, model=f"openai/{args.model}",
        model_class=None, redo_existing=False, config_spec=[str(swebench.DEFAULT_CONFIG_FILE), str(file)],
        environment_class=args.environment,
    )


def diff_of(answer):
    """The diff of an answer: its last block of one, else what stands from the first line of one on."""
    answer = answer.rpartition("</think>")[2]
    blocks = re.findall(r"```(?:diff|patch)\s*\n(.*?)```", answer, re.DOTALL)
    if blocks:
        return blocks[-1].rstrip() + "\n"
    start = re.search(r"^(diff --git |--- a/)", answer, re.MULTILINE)
    return answer[start.start() :].split("\n```")[0].rstrip() + "\n" if start else ""


def solve_at_once(args, statuses):
    key = os.environ.get("OPENAI_API_KEY") or "EMPTY"
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    answers, lock = {}, threading.Lock()
    (args.work / "agent").mkdir(parents=True, exist_ok=True)

    def one(row):
        text = PROMPT.format(repo=row["repo"], problem=row["problem_statement"])
        body = {"model": args.model, "temperature": 0, "messages": [{"role": "user", "content": text}]}
        request = urllib.request.Request(args.base_url + "/chat/completions", json.dumps(body).encode(), headers)
        name, patch, status = row["instance_id"], "", SUBMITTED
        try:
            with urllib.request.urlopen(request, timeout=1800) as answer:
                message = json.load(answer)["choices"][0]["message"]
            patch = diff_of(message.get("content") or message.get("reasoning_content") or "")
        except Exception as error:  # whatever it is, the instance has no answer
            status = f"{type(error).__name__}: {error}"
        with lock:
            answers[name] = {"instance_id": name, "model_name_or_path": args.model, "model_patch": patch}
            write(args.work / "agent/preds.json", answers)
        statuses.end(name, status)

    with concurrent.futures.ThreadPoolExecutor(args.workers) as pool:
        list(pool.map(one, dataset(args)))


# Scoring

MODAL_FILE = "harness/modal_eval/run_evaluation_modal.py"


def repairs(cpu):
    """What is put in place of what in the scorer on Modal: sandboxes reserve 4 cores, and none is ever terminated."""
    return [
        ("            cpu=4,\n", f"            cpu={cpu},\n"),
        (
            "            errored=True,\n        )\n\n\ndef run_instances_modal(",
            "            errored=True,\n        )\n    finally:\n        with contextlib.suppress(Exception):\n"
            "            runner.sandbox.terminate()\n\n\ndef run_instances_modal(",
        ),
        ("\nimport asyncio\n", "\nimport asyncio\nimport contextlib\n"),
    ]


def repaired(text, all_repairs):
    """The text with every repair, once; a text that has them stays as it is."""
    for anchor, replacement in all_repairs:
        if replacement in text:
            continue
        if text.count(anchor) != 1:
            raise SystemExit(f"swebench's {MODAL_FILE} holds {text.count(anchor)} of {anchor!r}: it cannot be repaired")
        text = text.replace(anchor, replacement)
    return text


def repaired_copy(folder):
    from importlib.util import find_spec

    pinned(SCORER)
    package = pathlib.Path(next(iter(find_spec("swebench").submodule_search_locations)))
    copy = pathlib.Path(folder) / "swebench"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / MODAL_FILE
    text = repaired(file.read_text(), repairs(knob("SWEBENCH_EVAL_SANDBOX_CPU", 2.0, float, 0.1)))
    compile(text, str(file), "exec")
    file.write_text(text)


def score(args):
    run = args.work / "score"
    run.mkdir(parents=True, exist_ok=True)
    name = f"sweepctl-{os.getpid()}-{int(time.time())}"
    command = [
        sys.executable, "-m", "swebench.harness.run_evaluation", "--dataset_name", args.dataset, "--split", args.split,
        "--predictions_path", str(args.out / "predictions.jsonl"), "--run_id", name,
        "--max_workers", str(knob("SWEBENCH_MAX_WORKERS", 4, int, 1)),
        "--timeout", str(knob("SWEBENCH_EVAL_TIMEOUT", 900, int, 1)), "--modal", str(args.on_modal).lower(),
    ]
    if "SWEBENCH_NAMESPACE" in os.environ:
        command += ["--namespace", os.environ["SWEBENCH_NAMESPACE"].strip() or "none"]
    with tempfile.TemporaryDirectory(prefix="sweepctl-swebench-") as library:
        environment = dict(os.environ)
        if args.on_modal:
            repaired_copy(library)
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [library, environment.get("PYTHONPATH")]))
        bounded(command, args.score_seconds, "SWEBENCH_SCORE_TIMEOUT", cwd=run, env=environment, check=True)
    found = [path for path in run.glob(f"*.{name}.json")]
    if len(found) != 1:
        sys.exit(f"the harness left {len(found)} reports")
    shutil.copyfile(found[0], args.out / f"swebench_report_{name}.json")
    report = json.loads(found[0].read_text())
    logs = run / "logs/run_evaluation" / name
    return report, {instance: why(logs, instance) for instance in report["error_ids"]}


def why(logs, instance):
    """Why an instance has no score; nothing where its patch is at fault."""
    files = list(logs.glob(f"*/{instance}/run_instance.log"))
    if not files:
        return "the harness did not run it"
    text = files[0].read_text(errors="replace")
    return None if any(fault in text for fault in OWN_FAULTS) else "the harness failed on it: see its run_instance.log"


# All of it


def bounded(command, seconds, name, check=False, **named):
    """Runs a phase up to its deadline; whether it ended by itself."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **named)
    try:
        code = child.wait(seconds)
    except subprocess.TimeoutExpired:
        print(f"{name}: it was ended after {seconds:.0f} seconds", flush=True)
        child.terminate()
        try:
            child.wait(60)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if check:
            sys.exit(f"scoring was ended after {seconds:.0f} seconds, as {name} says")
        return False
    if code != 0 and check:
        sys.exit(f"the harness exited with code {code}")
    return code == 0


def gathered(args):
    """The predictions and how each instance ended, as far as the agent came; staged in the form of the harness's."""
    def read(path):
        return json.loads(path.read_text()) if path.is_file() else {}

    predictions, statuses = read(args.work / "agent/preds.json"), read(args.work / "statuses.json")
    if predictions and args.mode == "agentic":
        shutil.copyfile(args.work / "agent/preds.json", args.out / "agent_preds.json")
        for path in (args.work / "agent").glob("*/*.traj.json"):
            shutil.copyfile(path, args.out / path.name)
    with (args.out / "predictions.jsonl").open("w") as file:
        for name in sorted(predictions):
            patch = predictions[name].get("model_patch") or ""
            row = {"instance_id": name, "model_name_or_path": args.model, "model_patch": patch}
            file.write(json.dumps(row) + "\n")
    return predictions, statuses


def main():
    args = arguments()
    args.work.mkdir(parents=True, exist_ok=True)
    if args.phase == "solve":
        solve = solve_agentic if args.mode == "agentic" else solve_at_once
        return solve(args, Statuses(args.work / "statuses.json"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("it was ended"))
    on_modal = args.on_modal or (args.mode == "agentic" and args.environment == "swerex_modal")
    with modal_credentials(on_modal):
        again = [sys.executable, __file__, *sys.argv[1:], "--phase", "solve"]
        whole = bounded(again, args.solve_seconds, "SWEBENCH_AGENT_TIMEOUT")
        predictions, statuses = gathered(args)
        if not predictions:
            sys.exit("no instance was answered")
        ends = {name: statuses.get(name, "it has no end") for name in predictions}
        unserved = {name: end for name, end in ends.items() if end != SUBMITTED and end not in BUDGET}
        summary = {"submitted_instances": len(predictions), "unserved_instances": len(unserved), "errors": unserved}
        summary["solved_whole"], summary["exit_statuses"] = whole, ends
        if args.only_solve:
            summary["predictions_only"] = 1
        else:
            report, unscored = score(args)
            unscored = {name: reason for name, reason in unscored.items() if reason and name not in unserved}
            if set(report["submitted_ids"]) != set(predictions):
                sys.exit("the harness's report is of other instances than the predictions")
            summary["resolved_instances"] = report["resolved_instances"]
            summary["empty_patch_instances"] = report["empty_patch_instances"]
            summary["error_instances"] = report["error_instances"]
            summary["unscored_instances"] = len(unscored)
            summary["errors"] = {**unserved, **unscored}
    write(args.out / "swebench_report.json", summary)


if __name__ == "__main__":
    main()
