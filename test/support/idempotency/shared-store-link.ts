import { MemoryStore } from '../../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../../src/store/store.ts'

/** The way of one instance to a store that all share. */
export class SharedStoreLink extends MemoryStore {
  /** `silent`: commands are carried out, and their replies are lost. */
  is: 'up' | 'silent' | 'down' = 'up'
  removals = 0
  override availableForMs = () => Infinity
  readonly #shared: MemoryStore

  constructor(shared: MemoryStore) {
    super()
    this.#shared = shared
  }

  async #ask<Reply>(command: (store: MemoryStore) => Promise<Reply>): Promise<Reply> {
    if (this.is === 'down') throw new StoreUnavailable('down')
    const reply = await command(this.#shared)
    if (this.is === 'silent') throw new StoreUnavailable('no reply')
    return reply
  }

  override create(...args: Parameters<MemoryStore['create']>) {
    return this.#ask((store) => store.create(...args))
  }
  override readUntracked(key: string) {
    return this.#ask((store) => store.readUntracked(key))
  }
  override replace(...args: Parameters<MemoryStore['replace']>) {
    return this.#ask((store) => store.replace(...args))
  }

  override removeIf(...args: Parameters<MemoryStore['removeIf']>) {
    this.removals++
    return this.#ask((store) => store.removeIf(...args))
  }
  override count(...args: Parameters<MemoryStore['count']>) {
    return this.#ask((store) => store.count(...args))
  }
  override unavailableSince(): undefined {
    return (this.is === 'up' ? undefined : 1) as undefined
  }
}
