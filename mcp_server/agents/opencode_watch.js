// A plugin of opencode: says what `opencode run` keeps to itself, ends it where it would go on trying for ever, and
// gives the model the prompt as it was written, which the command line puts into quotes.
import { readFileSync } from "node:fs"

const MOST_RETRIES = 1
const LONGEST_WAIT_MS = 60_000
const MOST_CUT_REPLIES = 3

const tell = (line, then) => process.stdout.write(JSON.stringify(line) + "\n", then)
const giveUp = (why, said) => tell({ type: "lab_watch", why, ...said }, () => process.exit(75))

export const Watch = async ({ client }) => {
  let asked = false
  let cut = 0

  const lab = async () => {
    asked = true
    const answer = await client.mcp.status()
    const { status, error } = answer.data?.lab ?? {}
    if (status && status !== "connected") giveUp("no_lab", { message: error || status })
  }

  const retry = ({ sessionID, status: { attempt, message, next } }) => {
    if (attempt > MOST_RETRIES || next - Date.now() > LONGEST_WAIT_MS) giveUp("retry", { sessionID, message, next })
  }

  // `run` prints a reply only when its calls are over, and not at all when it is ended before.
  // A connection that ends early counts as a reply without tokens, and is asked for again at once.
  const step = (part) => {
    const { sessionID, reason, tokens } = part
    tell({ type: "lab_reply", sessionID, part })
    cut = reason === "unknown" && tokens.output === 0 ? cut + 1 : 0
    if (cut >= MOST_CUT_REPLIES) giveUp("cut", { sessionID, message: "the replies of the model end before they are whole" })
  }

  return {
    "chat.message": async (_, { parts }) => {
      const file = process.env.KERNEL_LAB_PROMPT_FILE
      const [text] = parts.filter((part) => part.type === "text")
      if (file && text) text.text = readFileSync(file, "utf8")
    },
    event: async ({ event: { type, properties } }) => {
      if (type === "session.status" && properties.status.type === "busy" && !asked) await lab()
      if (type === "session.status" && properties.status.type === "retry") retry(properties)
      if (type === "message.part.updated" && properties.part.type === "step-finish") step(properties.part)
    },
  }
}
