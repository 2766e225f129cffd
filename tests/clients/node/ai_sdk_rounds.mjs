// The AI SDK's own loop with one tool: a wish as JSON on stdin, how often the tool was called and the last words on stdout.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import { json } from "node:stream/consumers";

const wish = await json(process.stdin);
const read = [];
const read_part = tool({
  description: "Reads a part of the document.",
  inputSchema: jsonSchema({ type: "object", properties: { part: { type: "integer" } }, required: ["part"] }),
  execute: ({ part }) => {
    read.push(part);
    return wish.parts[part - 1];
  },
});
const dominds = createOpenAICompatible({ name: "dominds", baseURL: wish.url, apiKey: wish.key, includeUsage: true });
const { text } = await generateText({
  model: dominds(wish.model),
  prompt: wish.task,
  tools: { read_part },
  stopWhen: stepCountIs(wish.parts.length + 10),
  maxRetries: 0,
});
console.log(JSON.stringify({ read, text }));
