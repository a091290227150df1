// OpenAI's Node SDK: chat completions and responses, whole and streamed.
import { createRequire } from "node:module";
import { TASK, TOOLS, run, way } from "./file_tools.mjs";

// The folder of the installed packages comes with the environment: these programs stand elsewhere.
const { OpenAI } = createRequire(`${process.env.CLIENT_PACKAGES}/`)("openai");

const [base, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "sk-none", maxRetries: 0, timeout: 30_000 });

async function chat(streamed) {
  const tools = TOOLS.map((tool) => ({ type: "function", function: tool }));
  const messages = [
    { role: "system", content: "You work on files." },
    { role: "user", content: TASK },
  ];
  for (;;) {
    const asked = { model, messages, tools };
    const answer = streamed
      ? await client.chat.completions
          .stream({ ...asked, stream_options: { include_usage: true } })
          .finalChatCompletion()
      : await client.chat.completions.create(asked);
    const { message, finish_reason } = answer.choices[0];
    messages.push(message);
    if (finish_reason !== "tool_calls")
      return [message.content, answer.usage.prompt_tokens, answer.usage.completion_tokens];
    for (const call of message.tool_calls)
      messages.push({
        role: "tool",
        tool_call_id: call.id,
        content: run(call.function.name, JSON.parse(call.function.arguments)),
      });
  }
}

async function responses(streamed) {
  const tools = TOOLS.map((tool) => ({ type: "function", strict: false, ...tool }));
  const input = [{ role: "user", content: TASK }];
  for (;;) {
    const asked = { model, instructions: "You work on files.", input, tools, store: false };
    const answer = streamed
      ? await client.responses.stream(asked).finalResponse()
      : await client.responses.create(asked);
    const calls = answer.output.filter((item) => item.type === "function_call");
    input.push(...answer.output.map(({ parsed_arguments, ...item }) => item));
    if (!calls.length) return [answer.output_text, answer.usage.input_tokens, answer.usage.output_tokens];
    for (const call of calls)
      input.push({
        type: "function_call_output",
        call_id: call.call_id,
        output: run(call.name, JSON.parse(call.arguments)),
      });
  }
}

for (const ask of [chat, responses])
  for (const streamed of [false, true]) await way(`${ask.name}-${streamed ? "streamed" : "whole"}`, () => ask(streamed));
