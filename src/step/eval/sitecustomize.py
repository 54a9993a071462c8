"""Two fallbacks that lm-eval lacks and serving needs, a count of what answers are, and a faster start.

They are put in place as its modules are imported.

Python imports this file by its name at every start, so it does nothing but wait for those imports. Another version
of lm-eval ends the process: its answers would be read differently without anybody noticing.
"""

import atexit
import importlib.machinery
import importlib.metadata
import importlib.util
import inspect
import json
import os
import sys

CLIENT = "lm_eval.models.openai_completions"
TASKS = "lm_eval.tasks.manager"
EXPECTED = os.environ.get("SWEEPCTL_LM_EVAL_VERSION", "")
MARK = os.environ.get("SWEEPCTL_LM_EVAL_MARK", "")
ANSWERS = os.environ.get("SWEEPCTL_LM_EVAL_ANSWERS", "")
BUNDLED = os.environ.get("SWEEPCTL_LM_EVAL_BUNDLED", "") == "true"


def refuse(why):
    # Not an Exception: lm-eval must not take it for a model that cannot be loaded.
    raise SystemExit(f"sweepctl: lm-eval cannot be adapted: {why}")


class Answers:
    """Counts silence, thought without an answer, and cuts: none of them is a wrong answer."""

    # An eval that is killed has said how far it came.
    every = 64

    def __init__(self):
        self.counts = {"asked": 0, "empty": 0, "reasoning_only": 0, "cut": 0}

    def add(self, choice, content, thought):
        self.counts["asked"] += 1
        self.counts["cut"] += choice.get("finish_reason") == "length"
        self.counts["reasoning_only"] += not content and thought
        self.counts["empty"] += not content and not thought
        if self.counts["asked"] % self.every == 0:
            self.write()

    def write(self):
        if not ANSWERS:
            return
        try:
            with open(ANSWERS + ".part", "w", encoding="utf-8") as file:
                json.dump(self.counts, file)
            os.replace(ANSWERS + ".part", ANSWERS)
        except OSError as error:
            print(f"sweepctl: answers cannot be counted: {error}", file=sys.stderr)


answers = Answers()


def said(text):
    return isinstance(text, str) and bool(text.strip())


def answer_or_reasoning(output):
    """Lets an empty answer be what the model thought: reasoning parsers leave it there when it ran out of tokens."""
    choices = output.get("choices") if isinstance(output, dict) else None
    for choice in choices if isinstance(choices, list) else []:
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            continue
        thought = message.get("reasoning_content") or message.get("reasoning")
        content = bool(str(message.get("content") or "").strip())
        answers.add(choice, content, said(thought))
        if not content and said(thought):
            message["content"] = thought


def plain_message(message):
    """A message whose text parts are one string: servers with a tokenizer of their own know no typed parts."""
    message = {key: value for key, value in message.items() if key != "type"}
    content = message.get("content")
    if isinstance(content, list) and all(isinstance(p, dict) and p.get("type") == "text" for p in content):
        message["content"] = "".join(part.get("text") or "" for part in content)
    return message


def checked_version():
    version = importlib.metadata.version("lm-eval")
    if version != EXPECTED:
        refuse(f"version {version} is installed, {EXPECTED or 'none'} is expected")
    return version


def adapt_tasks(module):
    """Leaves the thousands of tasks unread that lm-eval brings: reading them takes longer than many an eval."""
    checked_version()
    manager = getattr(module, "TaskManager", None)
    if manager is None or "include_defaults" not in inspect.signature(manager.__init__).parameters:
        refuse(f"{TASKS}.TaskManager takes no include_defaults")
    init = manager.__init__

    def __init__(self, *args, **kwargs):
        kwargs.setdefault("include_defaults", BUNDLED)
        init(self, *args, **kwargs)

    manager.__init__ = __init__


def adapt_client(module):
    version = checked_version()
    chat = getattr(module, "LocalChatCompletion", None)
    for method in ("parse_generations", "_create_payload"):
        if not callable(getattr(chat, method, None)):
            refuse(f"{CLIENT}.LocalChatCompletion has no {method}")
    if getattr(chat, "_sweepctl", False):
        return
    parse, create = chat.parse_generations, chat._create_payload

    def parse_generations(self, outputs, **kwargs):
        for output in outputs if isinstance(outputs, list) else [outputs]:
            answer_or_reasoning(output)
        return parse(self, outputs, **kwargs)

    def create_payload(self, messages, *args, **kwargs):
        if self.tokenizer_backend != "huggingface":
            messages = [plain_message(message) for message in messages]
        return create(self, messages, *args, **kwargs)

    chat.parse_generations, chat._create_payload, chat._sweepctl = parse_generations, create_payload, True
    atexit.register(answers.write)
    if MARK:
        with open(MARK, "w", encoding="utf-8") as file:
            file.write(version)


class Adapter:
    """Finds the modules as usual, and adapts each once it is loaded."""

    adapts = {CLIENT: adapt_client, TASKS: adapt_tasks}

    def find_spec(self, name, path=None, target=None):
        adapt = self.adapts.get(name)
        if adapt is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            refuse(f"{name} cannot be found")
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            adapt(module)

        spec.loader.exec_module = exec_module
        return spec


def run_shadowed():
    """Runs the sitecustomize that this file hides, where the container has one."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.meta_path.insert(0, Adapter())
run_shadowed()
