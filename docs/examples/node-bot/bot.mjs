// A bot that knows nothing of its evaluation: it rewrites the question, looks passages up, and answers.
import http from "node:http";

const MODEL_URL = process.env.MODEL_URL ?? "http://127.0.0.1:11434"; // the one thing a run changes
const PASSAGES = [
  "The library is open from ten to six, and closed on Mondays.",
  "A card costs five euros a year; it is free for children.",
  "Books are lent for four weeks. A loan can be extended twice.",
  "Two reading rooms can be booked a week ahead.",
];

async function ask(prompt) {
  const reply = await fetch(`${MODEL_URL}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "qwen2.5:1.5b", messages: [{ role: "user", content: prompt }] }),
  });
  if (!reply.ok) throw new Error(`model server: HTTP ${reply.status}`);
  return (await reply.json()).choices[0].message.content;
}

const words = (text) => new Set(text.toLowerCase().match(/\w+/g));
const shared = (one, other) => [...words(one)].filter((word) => words(other).has(word)).length;

async function answer(question) {
  const query = `${question} ${await ask(`Write search words for this question: ${question}`)}`;
  const found = PASSAGES.toSorted((a, b) => shared(query, b) - shared(query, a)).slice(0, 2);
  const said = await ask(`Answer from these passages:\n${found.join("\n---\n")}\n\nQuestion: ${question}`);
  return `**${said.trim()}**\n\nAnything else?`;
}

http.createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  if (request.method !== "POST") return response.end("ready");
  const text = await answer(JSON.parse(body).question).catch((error) => response.writeHead(500) && String(error));
  response.end(JSON.stringify({ text }));
}).listen(Number(process.argv[2]), "127.0.0.1");
