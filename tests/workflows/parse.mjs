// Reads workflow files with GitHub's own parser, as the service does, and prints the jobs and errors of each as JSON.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from "@actions/workflow-parser";

async function read(path) {
  const file = { name: basename(path), content: readFileSync(path, "utf8") };
  const { context, value } = parseWorkflow(file, new NoOperationTraceWriter());
  const template = value && (await convertWorkflowTemplate(context, value));
  const errors = [...context.errors.getErrors(), ...(template?.errors ?? [])];
  const messages = errors.map((error) => error.message ?? error.Message);
  return { path, jobs: template?.jobs?.length ?? 0, errors: [...new Set(messages)] };
}

Promise.all(process.argv.slice(2).map(read)).then((files) => console.log(JSON.stringify(files)));
