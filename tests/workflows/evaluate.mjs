// Evaluates expressions with GitHub's own engine. Reads {scopes, cases} as JSON: a scope is {contexts, status}, a case an
// expression and the number of its scope. Prints for each case its kind, its text and its JSON, or the error.
import { readFileSync } from "node:fs";
import { data, Evaluator, Lexer, Parser } from "@actions/expressions";

const kinds = Object.fromEntries(Object.entries(data.Kind).map(([name, kind]) => [kind, name]));
const revived = (value) => JSON.parse(JSON.stringify(value), data.reviver);

function scope({ contexts, status }) {
  const values = Object.entries(contexts).map(([key, value]) => ({ key, value: revived(value) }));
  const answers = status ? { ...status, always: true } : {};
  const functions = Object.entries(answers).map(([name, answer]) => ({
    name, description: "", minArgs: 0, maxArgs: 0, call: () => new data.BooleanData(answer),
  }));
  return { names: Object.keys(contexts), context: new data.Dictionary(...values), functions };
}

function evaluate(expression, { names, context, functions }) {
  try {
    const tree = new Parser(new Lexer(expression).lex().tokens, names, functions).parse();
    const found = new Evaluator(tree, context, new Map(functions.map((f) => [f.name, f]))).evaluate();
    return { kind: kinds[found.kind], text: found.coerceString(), json: JSON.stringify(found, data.replacer, "  ") };
  } catch (error) {
    return { error: String(error.message) };
  }
}

const { scopes, cases } = JSON.parse(readFileSync(0, "utf8"));
const known = scopes.map(scope);
console.log(JSON.stringify(cases.map(([expression, number]) => evaluate(expression, known[number]))));
