"""Runs categories of BFCL against a chat completions endpoint, and writes one report of them.

BFCL answers for the model through handlers that its package lists. The list imports the libraries of every provider,
gigabytes of them, for one handler that needs `openai` alone: the others are replaced by empty ones here. Generation and
scoring are the package's own.
"""

import argparse
import importlib.abc
import importlib.machinery
import json
import os
import pathlib
import sys
import types

# What the handlers of other providers import, and the categories that are not run here.
ABSENT = {
    "anthropic", "boto3", "botocore", "bs4", "cohere", "dashscope", "datamodel_code_generator", "faiss", "google",
    "html2text", "huggingface_hub", "mistralai", "mpmath", "qwen_agent", "rank_bm25", "requests",
    "sentence_transformers", "serpapi", "torch", "transformers", "writerai", "networkx", "pandas",
}
ERROR = "Error during inference:"
NAME = "served-model"


class Anything(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (Exception,), {})


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = lambda name: getattr(Anything("Absent", (Exception,), {}), name)
        return module

    def exec_module(self, module):
        pass


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--categories", required=True, help="names with commas between")
    parser.add_argument("--first", type=int, help="the first cases of each category [default: all]")
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--work", required=True, type=pathlib.Path, help="where BFCL keeps its files")
    parser.add_argument("--report", required=True, type=pathlib.Path)
    parser.add_argument("--results", required=True, type=pathlib.Path, help="the answers, as JSON lines")
    return parser.parse_args()


def register(args):
    import openai
    from bfcl_eval.constants.model_config import MODEL_CONFIG_MAPPING, ModelConfig
    from bfcl_eval.model_handler.api_inference.openai_completion import OpenAICompletionsHandler

    class Handler(OpenAICompletionsHandler):
        def __init__(self, *positional, **named):
            super().__init__(*positional, **named)
            self.client = openai.OpenAI(base_url=args.base_url, timeout=args.timeout, max_retries=2)

        def _query_FC(self, inference_data):
            inference_data["inference_input_log"] = {
                "message": repr(inference_data["message"]),
                "tools": inference_data["tools"],
            }
            request = {"messages": inference_data["message"], "model": args.model, "temperature": 0}
            if inference_data["tools"]:
                request["tools"] = inference_data["tools"]
            return self.generate_with_backoff(**request)

    MODEL_CONFIG_MAPPING[NAME] = ModelConfig(
        model_name=NAME, display_name=NAME, url="", org="", license="", model_handler=Handler,
        input_price=None, output_price=None, is_fc_model=True, underscore_to_dot=True,
    )


def run(args, categories):
    """Generates and scores; returns the folders of answers and of scores."""
    from bfcl_eval._llm_response_generation import main as generate
    from bfcl_eval.constants.eval_config import RESULT_PATH, SCORE_PATH, TEST_IDS_TO_GENERATE_PATH
    from bfcl_eval.eval_checker.eval_runner import main as evaluate
    from bfcl_eval.utils import load_dataset_entry

    if args.first:
        chosen = {name: [entry["id"] for entry in load_dataset_entry(name)[: args.first]] for name in categories}
        TEST_IDS_TO_GENERATE_PATH.write_text(json.dumps(chosen))
    generate(
        types.SimpleNamespace(
            model=[NAME], test_category=categories, temperature=0.0, include_input_log=False, exclude_state_log=False,
            num_threads=args.concurrency, result_dir=None, allow_overwrite=True, run_ids=bool(args.first),
        )
    )
    evaluate([NAME], categories, None, None, partial_eval=bool(args.first))
    return RESULT_PATH, SCORE_PATH


def lines(folder, category, end):
    for file in folder.rglob(f"BFCL_v?_{category}_{end}.json"):
        yield from (json.loads(line) for line in file.read_text().splitlines() if line.strip())


def main():
    args = arguments()
    args.work.mkdir(parents=True, exist_ok=True)
    os.environ["BFCL_PROJECT_ROOT"] = str(args.work)
    os.environ.setdefault("OPENAI_API_KEY", "EMPTY")
    sys.meta_path.insert(0, Absent())
    categories = args.categories.split(",")
    register(args)
    answers, scores = run(args, categories)
    report = {"total": 0, "correct": 0, "inference_errors": 0, "categories": {}}
    with args.results.open("w") as results:
        for category in categories:
            rows = list(lines(answers, category, "result"))
            failed = [row["id"] for row in rows if str(row.get("result")).startswith(ERROR)]
            score = next(lines(scores, category, "score"), {})
            # What was generated is counted, not what the scores say of it.
            found = {
                "total": len(rows),
                "correct": score.get("correct_count", 0),
                "inference_errors": len(failed),
                "failed": failed,
            }
            report["categories"][category] = found
            for name in ("total", "correct", "inference_errors"):
                report[name] += found[name]
            results.writelines(json.dumps(row) + "\n" for row in rows)
    args.report.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
