import { randomUUID } from 'node:crypto'
import type { RedisCommands, RedisLink } from './redis-link.ts'
import { evenWhenFull, runScript, type Ask } from './script.ts'
import type { DocumentReading, SharedDocument } from './shared-document.ts'

/** The word before the version of a document that has changed. Version 2 sends other words on the same channel. */
const CHANGED = 'changed'

const READ = `return {redis.call('GET', KEYS[1]), redis.call('TIME')}`

/** A Redis user without the right to publish can still write. */
const WRITE = evenWhenFull(`
if string.match(redis.call('GET', KEYS[1]) or '', '^%S*') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2] .. ' ' .. ARGV[3], 'PX', ARGV[4])
redis.pcall('PUBLISH', ARGV[5], '${CHANGED} ' .. ARGV[2])
return 1`)

type ReadReply = [value: string | null, time: [seconds: string, microseconds: string]]

/** A document in Redis: one key, whose value is a version, a space and the text, and a channel that names each new version. */
export class RedisDocument implements SharedDocument {
  readonly #ask: Ask<RedisCommands>
  readonly #key: string
  readonly #channel: string
  readonly #subscription: { close(): void }
  /** The version that this instance has written last, of which it needs no news. */
  #written = ''

  /**
   * @param ask runs commands whose keys the server does not track
   * @param onChange another instance has changed the document, or may have
   */
  constructor(
    key: string,
    channel: string,
    onChange: () => void,
    link: Pick<RedisLink, 'listen'>,
    ask: Ask<RedisCommands>,
  ) {
    this.#ask = ask
    this.#key = key
    this.#channel = channel
    this.#subscription = link.listen(channel, {
      message: (text) => {
        const [word, version] = text.split(' ')
        if (word === CHANGED && version !== this.#written) onChange()
      },
      up: onChange,
    })
  }

  async read(): Promise<DocumentReading> {
    const reply = await this.#ask((redis) => runScript(redis, READ, [this.#key]))
    const [value, [seconds, microseconds]] = reply as ReadReply
    const [version = ''] = (value ?? '').split(' ', 1)
    const text = (value ?? '').slice(version.length + 1)
    return { version, text, now: Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000) }
  }

  async write(version: string, text: string, ttlMs: number): Promise<boolean> {
    const next = randomUUID()
    // Before the reply, since the news of it may come first.
    this.#written = next
    const args = [version, next, text, ttlMs, this.#channel]
    return (await this.#ask((redis) => runScript(redis, WRITE, [this.#key], args))) === 1
  }

  close(): void {
    this.#subscription.close()
  }
}
