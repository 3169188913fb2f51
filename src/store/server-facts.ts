import { SESSION_KEYS } from './keys.ts'
import { delay, within, type MasterCommands, type RedisLink } from './redis-link.ts'
import type { StoreFacts } from '../telemetry/store-observer.ts'

/** Servers are asked no more often, however many ask for the metrics. */
const ASK_EVERY_MS = 5000
/** Who asks for the metrics waits no longer. */
const PATIENCE_MS = 250
/** How long the servers may take. */
const ANSWER_MS = 2000
/** Older facts are none. */
const MAX_AGE_MS = 20_000
/** Of so many keys each is looked at; of more, as many are drawn at random. */
const MAX_COUNTED = 500
const DRAWN = 250

/**
 * How many keys are those of sessions: counted where there are few keys, else estimated from some that are drawn. Where
 * half of the keys are sessions the standard error is 6 %. It takes Redis a millisecond or two, however many there are.
 */
const COUNT_SESSIONS = `
local prefix, length = ARGV[1], tonumber(ARGV[2])
local function is_session(key) return #key == length and string.sub(key, 1, #prefix) == prefix end
local size = redis.call('DBSIZE')
local sessions = 0
if size <= ${MAX_COUNTED} then
  local seen, cursor = {}, '0'
  repeat
    local page = redis.call('SCAN', cursor, 'COUNT', ${MAX_COUNTED})
    cursor = page[1]
    for _, key in ipairs(page[2]) do
      if not seen[key] and is_session(key) then sessions = sessions + 1 end
      seen[key] = true
    end
  until cursor == '0'
  return sessions
end
for _ = 1, ${DRAWN} do
  local key = redis.call('RANDOMKEY')
  if key and is_session(key) then sessions = sessions + 1 end
end
return math.floor(size * sessions / ${DRAWN} + 0.5)`

type Memory = NonNullable<StoreFacts['memory']>

/** What the masters tell of themselves: asked only when somebody wants to know, and then not too often. */
export class ServerFacts {
  readonly #link: RedisLink
  #known: { readonly facts: StoreFacts; readonly at: number } | undefined
  #askedAt = -Infinity
  #asking: Promise<void> | undefined

  constructor(link: RedisLink) {
    this.#link = link
  }

  /** Undefined when the servers have not told for too long. Never rejects. */
  async read(): Promise<StoreFacts | undefined> {
    const now = performance.now()
    if (this.#asking === undefined && now - this.#askedAt >= ASK_EVERY_MS) {
      this.#askedAt = now
      this.#asking = this.#ask().finally(() => (this.#asking = undefined))
    }
    if (this.#asking !== undefined) await Promise.race([this.#asking, delay(PATIENCE_MS)])
    const known = this.#known
    return known !== undefined && performance.now() - known.at < MAX_AGE_MS ? known.facts : undefined
  }

  async #ask(): Promise<void> {
    // Apart: this user may be allowed to ask the one, but not the other.
    const [counts, memories] = await Promise.all([this.#askFor(countSessions), this.#askFor(memoryOf)])
    if (counts === undefined && memories === undefined) return
    const memory = fullest(memories ?? [])
    const facts = { ...(counts && { sessions: sum(counts) }), ...(memory && { memory }) }
    this.#known = { facts, at: performance.now() }
  }

  /** Undefined when a server does not tell, or not in time. */
  async #askFor<Reply>(question: (master: MasterCommands) => Promise<Reply>): Promise<Reply[] | undefined> {
    return within(ANSWER_MS, this.#link.askMasters(question)).catch(() => undefined)
  }
}

async function countSessions(master: MasterCommands): Promise<number> {
  const { prefix, length } = SESSION_KEYS
  return Number(await master.eval(COUNT_SESSIONS, { arguments: [prefix, String(length)] }))
}

async function memoryOf(master: MasterCommands): Promise<Memory> {
  return readMemory(parseInfo(await master.info('memory')))
}

/** Of the server that refuses writes first. */
function fullest(memories: readonly Memory[]): Memory | undefined {
  const share = ({ usedBytes, maxBytes }: Memory): number => (maxBytes === 0 ? 0 : usedBytes / maxBytes)
  return memories.toSorted((one, other) => share(other) - share(one) || other.usedBytes - one.usedBytes)[0]
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}

/** The answer of INFO: lines of `name:value`. */
export function parseInfo(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(text.split('\r\n').map((line) => line.split(/:(.*)/s, 2)))
}

/** What counts against maxmemory, and maxmemory itself: buffers of replicas and of the append-only file do not count. */
export function readMemory(info: Readonly<Record<string, string>>): Memory {
  const number = (name: string): number => Number(info[name] ?? 0)
  return {
    usedBytes: Math.max(0, number('used_memory') - number('mem_not_counted_for_evict')),
    maxBytes: number('maxmemory'),
  }
}
