import type { Tab } from './tab.ts'
import type { VirtualTime } from './virtual-time.ts'

interface Lock {
  readonly tab: Tab
  readonly grant: () => void
}

/** The Web Locks of a browser that has one name. The first in the list has the lock, or is about to get it. */
export class TabLocks {
  readonly #all: Lock[] = []
  readonly #time: VirtualTime

  constructor(time: VirtualTime) {
    this.#time = time
  }

  /** `navigator.locks` of a tab. */
  of(tab: Tab): object {
    return {
      request: (_name: string, { signal }: { signal: AbortSignal }, granted: () => unknown) =>
        new Promise((resolve, reject) => {
          let isHeld = false
          const grant = (): void => {
            if (isHeld) return
            isHeld = true
            void Promise.resolve(granted()).then((value) => {
              this.#release(lock)
              resolve(value)
            })
          }
          const lock: Lock = { tab, grant }
          signal.addEventListener('abort', () => {
            if (isHeld) return
            this.#release(lock)
            reject(signal.reason as Error)
          })
          this.#all.push(lock)
          if (this.#all[0] === lock) this.#grant()
        }),
    }
  }

  /** The tab is gone. */
  forget(tab: Tab): void {
    for (const lock of this.#all.filter((lock) => lock.tab === tab)) this.#release(lock)
  }

  #release(lock: Lock): void {
    const at = this.#all.indexOf(lock)
    if (at < 0) return
    this.#all.splice(at, 1)
    if (at === 0) this.#grant()
  }

  #grant(): void {
    const [first] = this.#all
    if (first) this.#time.later(1, () => this.#all[0] === first && first.grant(), first.tab)
  }
}
