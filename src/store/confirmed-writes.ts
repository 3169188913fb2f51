import { runnerOf, type Command, type SkewMs } from './command.ts'
import { CONFIRMABLE } from './data-commands.ts'
import { replyCode } from './links/redis-link.ts'
import type { Replicas } from './links/replicas.ts'
import { StoreUnavailable } from './store.ts'

/** What the store is told. */
interface Events {
  /** A server has replied with this error code. */
  errorCode(code: string): void
  readonly skewMs: SkewMs
  /** A write was not confirmed. */
  unconfirmed(): void
}

/** The writes of a Redis that count once a number of replicas have confirmed them. */
export class ConfirmedWrites extends runnerOf(CONFIRMABLE) {
  readonly #replicas: Replicas
  readonly #needed: number
  readonly #events: Events

  /** @param needed how many replicas have to confirm */
  constructor(replicas: Replicas, needed: number, events: Events) {
    super()
    this.#replicas = replicas
    this.#needed = needed
    this.#events = events
  }

  override async run<Args extends readonly unknown[], Reply>(
    command: Command<never, Args, Reply>,
    args: Args,
  ): Promise<Reply> {
    const { skewMs } = this.#events
    const key = args[0] as string
    try {
      const reply = await this.#replicas.write(key, this.#needed, (redis) => command.send(redis, skewMs, ...args))
      return command.reply(reply, skewMs, ...args)
    } catch (cause) {
      const code = replyCode(cause)
      if (code !== undefined) this.#events.errorCode(code)
      this.#events.unconfirmed()
      throw new StoreUnavailable(cause)
    }
  }
}
