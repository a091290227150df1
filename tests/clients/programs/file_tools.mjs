// The tools that the Node programs offer, and how they report.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

export const TASK = "Write done.txt, read it back, then say that you are done.";
const path = { path: { type: "string", description: "Relative to the working folder" } };
export const TOOLS = [
  {
    name: "write_file",
    description: "Write a text file",
    parameters: {
      type: "object",
      properties: { ...path, content: { type: "string" } },
      required: ["path", "content"],
      additionalProperties: false,
    },
  },
  {
    name: "read_file",
    description: "Read a text file",
    parameters: { type: "object", properties: path, required: ["path"], additionalProperties: false },
  },
];

// Call a tool; its result, as text for the model.
export function run(name, args) {
  if (name === "read_file") return readFileSync(args.path, "utf8");
  writeFileSync(args.path, args.content);
  return `${args.path} is written`;
}

// Work in a folder of that name and tell the outcome: `ask` gives [text, input tokens, output tokens].
export async function way(name, ask) {
  mkdirSync(name);
  const before = process.cwd();
  process.chdir(name);
  try {
    const [text, input, output] = await ask();
    console.log(JSON.stringify({ way: name, text, input, output }));
  } finally {
    process.chdir(before);
  }
}
