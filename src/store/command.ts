import type { RedisCommands } from './links/redis-link.ts'

/** How far the clock of the master that holds a key is ahead of the store's (ms). */
type SkewMs = (key: string) => number

/**
 * A command of the store as one object: what is sent to Redis, what the reply means, and what the command means in the memory of
 * one process. Stores are runners of it, and know no command by name.
 */
export interface Command<Memory, Args extends readonly unknown[], Reply> {
  /**
   * Sends it: one command of Redis, or several that go out together. The first key of each decides which master of a Cluster
   * gets it. Times go out by the clock of that master, which is what a key ends by.
   */
  send(redis: RedisCommands, skewMs: SkewMs, ...args: Args): Promise<unknown>
  /** The reply, where there is nothing to send. */
  known?(...args: Args): { readonly reply: Reply } | undefined
  /** Translates the reply of Redis, with times by the clock of the store. */
  reply(reply: unknown, skewMs: SkewMs, ...args: Args): Reply
  /** The same in the memory of one process. */
  memory(memory: Memory, ...args: Args): Reply
  /**
   * The server need not report changes of its keys. Such a command sends one command of Redis only, because CLIENT CACHING NO
   * concerns the next one alone.
   */
  readonly isUntracked?: true
  /**
   * When listeners have to be told of a change of its first key. Redis does not tell the connection that made it (NOLOOP):
   * neither of a write, nor of the expiry that a read has made happen.
   */
  readonly tells?: 'always' | 'ifGone'
  /** The error with which Redis refused a part of the command, if it did. */
  refusal?(reply: unknown): string | null
}

/** A table of commands, one for each method. */
export type Commands<Memory, Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends (...args: infer Args) => Promise<infer Reply>
    ? Command<Memory, Args, Reply>
    : never
}

/** Runs commands: with Redis, in memory, or with Redis until replicas have confirmed them. */
interface Runner<Memory> {
  run<Args extends readonly unknown[], Reply>(command: Command<Memory, Args, Reply>, args: Args): Promise<Reply>
}

/** The methods that run the commands of a table. */
export function methodsOf<Memory, Methods>(commands: Commands<Memory, Methods>, runner: Runner<Memory>): Methods {
  const entries = Object.entries<Command<Memory, unknown[], unknown>>(commands)
  const methods = entries.map(([name, command]) => [name, (...args: unknown[]) => runner.run(command, args)])
  return Object.fromEntries(methods) as Methods
}

/** A class with the methods that run the commands of a table. How they run is for its heir to say. */
export function runnerOf<Memory, Methods>(
  commands: Commands<Memory, Methods>,
): abstract new () => Methods & Runner<Memory> {
  abstract class Base {
    abstract run: Runner<Memory>['run']
  }
  for (const [name, command] of Object.entries<Command<Memory, unknown[], unknown>>(commands)) {
    const value = function (this: Base, ...args: unknown[]): Promise<unknown> {
      return this.run(command, args)
    }
    Object.defineProperty(Base.prototype, name, { value, configurable: true, writable: true })
  }
  return Base as unknown as ReturnType<typeof runnerOf<Memory, Methods>>
}
