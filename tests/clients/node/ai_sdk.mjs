// The AI SDK with its provider for compatible servers: a wish on stdin (client.py), the answer on stdout, both as JSON.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { json } from "node:stream/consumers";

const wish = await json(process.stdin);
const answer = { text: "", thoughts: "", calls: [], finish: "", prompt_tokens: null, statuses: [], error: null };
const dominds = createOpenAICompatible({
  name: "dominds",
  baseURL: wish.url,
  apiKey: wish.key,
  headers: wish.headers,
  includeUsage: true,
});
const leaving = new AbortController();

function toolOf([name, result]) {
  const inputSchema = jsonSchema({ type: "object", properties: { city: { type: "string" } } });
  const execute = (input) => {
    answer.calls.push(name + JSON.stringify(input));
    return result;
  };
  return [name, tool({ inputSchema, execute })];
}

const request = {
  model: dominds(wish.model),
  messages: wish.messages,
  tools: Object.fromEntries(Object.entries(wish.results).map(toolOf)),
  stopWhen: stepCountIs(5),
  maxRetries: 0,
  abortSignal: leaving.signal,
};

function note(error) {
  const said = APICallError.isInstance(error) ? JSON.parse(error.responseBody).error : error;
  answer.error = { kind: error.name ?? typeof error, status: error.statusCode ?? null, code: said.code ?? null };
}

function hear(part) {
  if (part.type === "text-delta") answer.text += part.text;
  if (part.type === "reasoning-delta") answer.thoughts += part.text;
  if (part.type === "error") note(part.error);
  if (part.type === "abort") answer.error = { kind: "abort" };
  if (part.type === "finish") end(part.finishReason, part.totalUsage);
  if (wish.leave_at && answer.text.includes(wish.leave_at)) leaving.abort();
}

function end(finish, usage) {
  answer.finish = finish;
  answer.prompt_tokens = usage.inputTokens ?? null;
}

try {
  if (wish.stream) {
    // The SDK writes errors to the console where nobody hears them.
    for await (const part of streamText({ ...request, onError: () => {} }).fullStream) hear(part);
  } else {
    const result = await generateText(request);
    answer.text = result.text;
    end(result.finishReason, result.usage);
  }
} catch (error) {
  note(error);
}
console.log(JSON.stringify(answer));
