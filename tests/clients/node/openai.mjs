// OpenAI's own client for Node, with a wish on stdin (client.py) and the answer on stdout, both as JSON.
import OpenAI from "openai";
import { json } from "node:stream/consumers";

const wish = await json(process.stdin);
const answer = { text: "", thoughts: "", calls: [], finish: "", prompt_tokens: null, statuses: [], error: null };
const client = new OpenAI({
  baseURL: wish.url,
  apiKey: wish.key,
  maxRetries: 0,
  timeout: 60_000,
  defaultHeaders: wish.headers,
});
const tools = Object.keys(wish.results).map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: { city: { type: "string" } } } },
}));
const body = { model: wish.model, messages: wish.messages, ...(tools.length ? { tools } : {}) };

// Their helper collects a message of chunks, and stops at whatever is none.
async function streamed() {
  const stream = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
  stream.on("chunk", (chunk) => {
    if (chunk.event) answer.statuses.push(chunk.event.data.description);
    answer.thoughts += chunk.choices[0]?.delta.reasoning_content ?? "";
  });
  stream.on("content", (piece, whole) => {
    answer.text = whole;
    if (wish.leave_at && whole.includes(wish.leave_at)) stream.abort();
  });
  return stream.finalChatCompletion();
}

async function asked() {
  const completion = wish.stream ? await streamed() : await client.chat.completions.create(body);
  const [choice] = completion.choices;
  answer.text = choice.message.content ?? "";
  answer.finish = choice.finish_reason;
  answer.prompt_tokens = completion.usage?.prompt_tokens ?? null;
  return choice.message;
}

try {
  for (let message = await asked(); message.tool_calls?.length; message = await asked()) {
    const results = message.tool_calls.map((call) => ({
      role: "tool",
      tool_call_id: call.id,
      content: wish.results[call.function.name],
    }));
    answer.calls.push(...message.tool_calls.map((call) => call.function.name + call.function.arguments));
    body.messages = [...body.messages, message, ...results];
  }
} catch (error) {
  answer.error = { kind: error.constructor.name, status: error.status ?? null, code: error.code ?? null };
}
console.log(JSON.stringify(answer));
