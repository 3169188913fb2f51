import { methodsOf, runnerOf, type Command } from './command.ts'
import { DATA } from './data-commands.ts'
import { SESSION_KEYS } from './keys.ts'
import { MemoryValues } from './memory-values.ts'
import type { SessionIndex } from './session-index.ts'
import { LIMITS } from './limit-commands.ts'
import type { Ledger, LedgerTerms } from './ledger/ledger.ts'
import type { Store, StoreCondition } from './store.ts'
import type { StoreFacts } from '../telemetry/store-observer.ts'

/** A store inside this process, for development. It ends with the process, and no other process sees it. */
export class MemoryStore extends runnerOf(DATA) implements Store {
  readonly staleMs = Infinity
  readonly reportsBurials = true
  readonly limits = methodsOf(LIMITS, this)
  readonly #values = new MemoryValues((key) => this.#notify(key))
  #index: SessionIndex | undefined
  readonly #listeners: ((key: string | undefined) => void)[] = []

  override async run<Args extends readonly unknown[], Reply>(
    command: Command<MemoryValues, Args, Reply>,
    args: Args,
  ): Promise<Reply> {
    return command.memory(this.#values, ...args)
  }

  onChange(listener: (key: string | undefined) => void): void {
    this.#listeners.push(listener)
  }

  watchBurials(): void {
    // Every change is reported.
  }

  async isReplicated(): Promise<undefined> {
    return undefined
  }

  async openIndex(): Promise<SessionIndex> {
    const { INDEX, memoryIndexes } = await import('./index-commands.ts')
    const indexes = memoryIndexes()
    return (this.#index ??= methodsOf(INDEX, { run: async (command, args) => command.memory(indexes, ...args) }))
  }

  async openLedger(name: string, terms: LedgerTerms): Promise<Ledger> {
    const [{ ledgerCommands }, { MemoryLedger }] = await Promise.all([
      import('./ledger/ledger-commands.ts'),
      import('./ledger/memory-ledger.ts'),
    ])
    const ledger = new MemoryLedger()
    return methodsOf(ledgerCommands(name, terms), { run: async (command, args) => command.memory(ledger, ...args) })
  }

  async openRefusals(): Promise<undefined> {
    return undefined
  }

  async openConfirmed(): Promise<this> {
    return this
  }

  watchReplication(): void {
    // There are no replicas.
  }

  observe(): void {
    // There are no round trips to observe.
  }

  async facts(): Promise<StoreFacts> {
    const { prefix, length } = SESSION_KEYS
    const keys = this.#values.keys()
    return { sessions: keys.filter((key) => key.startsWith(prefix) && key.length === length).length }
  }

  warnings(): [] {
    return []
  }

  availableForMs(_key: string): number {
    return Infinity
  }

  unavailableSince(): undefined {
    return undefined
  }

  condition(): StoreCondition {
    return { why: [], share: 1, clock: { hereAheadMs: undefined, mastersDifferMs: 0 } }
  }

  async close(): Promise<void> {
    this.#values.clear()
  }

  #notify(key: string): void {
    for (const listener of this.#listeners) listener(key)
  }
}
