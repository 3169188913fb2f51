import { MemoryStore } from '../../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../../src/store/store.ts'

/** A store whose commands about records pass a gate, behind which instances may share another store. */
export abstract class GatedStore extends MemoryStore {
  readonly #shared: MemoryStore

  constructor(shared = new MemoryStore()) {
    super()
    this.#shared = shared
  }

  /** Carries a command out, or not, and returns its reply, or not. */
  protected abstract pass<Reply>(command: () => Promise<Reply>): Promise<Reply>

  override create(...args: Parameters<MemoryStore['create']>) {
    return this.pass(() => this.#shared.create(...args))
  }
  override readUntracked(key: string) {
    return this.pass(() => this.#shared.readUntracked(key))
  }
  override replace(...args: Parameters<MemoryStore['replace']>) {
    return this.pass(() => this.#shared.replace(...args))
  }
  override removeIf(...args: Parameters<MemoryStore['removeIf']>) {
    return this.pass(() => this.#shared.removeIf(...args))
  }
  override count(...args: Parameters<MemoryStore['count']>) {
    return this.pass(() => this.#shared.count(...args))
  }
}

/** The way of one instance to a store that all share. */
export class SharedStoreLink extends GatedStore {
  /** `silent`: commands are carried out, and their replies are lost. */
  is: 'up' | 'silent' | 'down' = 'up'
  removals = 0
  override availableForMs: (key: string) => number = () => Infinity

  protected override async pass<Reply>(command: () => Promise<Reply>): Promise<Reply> {
    if (this.is === 'down') throw new StoreUnavailable('down')
    const reply = await command()
    if (this.is === 'silent') throw new StoreUnavailable('no reply')
    return reply
  }

  override removeIf(...args: Parameters<MemoryStore['removeIf']>) {
    this.removals++
    return super.removeIf(...args)
  }
  override unavailableSince(): undefined {
    return (this.is === 'up' ? undefined : 1) as undefined
  }
}
