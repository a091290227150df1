// Anthropic's Node SDK: messages, whole and streamed, and a count of tokens.
import assert from "node:assert";
import { createRequire } from "node:module";
import { TASK, TOOLS, run, way } from "./file_tools.mjs";

const { Anthropic } = createRequire(`${process.env.CLIENT_PACKAGES}/`)("@anthropic-ai/sdk");

const [base, model] = process.argv.slice(2);
const client = new Anthropic({ baseURL: base, apiKey: "sk-none", maxRetries: 0, timeout: 30_000 });

async function messages(streamed) {
  const tools = TOOLS.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters }));
  const history = [{ role: "user", content: TASK }];
  for (;;) {
    const asked = { model, max_tokens: 1000, system: "You work on files.", messages: history, tools };
    const answer = streamed ? await client.messages.stream(asked).finalMessage() : await client.messages.create(asked);
    history.push({ role: "assistant", content: answer.content });
    if (answer.stop_reason !== "tool_use") {
      const text = answer.content.map((block) => (block.type === "text" ? block.text : "")).join("");
      const { input_tokens, cache_read_input_tokens, output_tokens } = answer.usage;
      return [text, input_tokens + (cache_read_input_tokens ?? 0), output_tokens];
    }
    const calls = answer.content.filter((block) => block.type === "tool_use");
    history.push({
      role: "user",
      content: calls.map(({ id, name, input }) => ({ type: "tool_result", tool_use_id: id, content: run(name, input) })),
    });
  }
}

const counted = await client.messages.countTokens({ model, messages: [{ role: "user", content: "How long is this?" }] });
assert(counted.input_tokens > 0);
const listed = await client.models.list();
assert(listed.data.some((each) => each.id === model));
for (const streamed of [false, true]) await way(streamed ? "messages-streamed" : "messages-whole", () => messages(streamed));
