import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

const CHILD = fileURLToPath(new URL('page-crowd-process.ts', import.meta.url))

/** What a process of pages works with. */
export interface CrowdInit {
  readonly pageUrl: string
  /** The Cookie header of each page. */
  readonly cookies: readonly string[]
}

/** A change of the trading socket of one page. */
export interface PageChange {
  /** The Cookie header of the page. */
  readonly page: string
  readonly state: string
  readonly code?: number
  readonly reason?: string
  /** Epoch ms. */
  readonly at: number
}

/** Pages in processes of their own, each with the built browser package, a session and a trading socket. */
export class PageCrowd {
  readonly changes: PageChange[] = []
  readonly #children: ChildProcess[] = []
  readonly #open = new Set<string>()

  /** Starts `processes` processes that share the pages. They end with the test. */
  static start(t: Test, init: CrowdInit, processes: number): PageCrowd {
    const crowd = new PageCrowd()
    const size = Math.ceil(init.cookies.length / processes)
    for (let index = 0; index < processes; index++) {
      const child = fork(CHILD, { execArgv: ['--no-warnings'], stdio: 'inherit' })
      crowd.#children.push(child)
      child.on('message', (change: PageChange) => crowd.#note(change))
      child.send({ ...init, cookies: init.cookies.slice(index * size, (index + 1) * size) })
      t.teardown(async () => {
        if (child.exitCode !== null || child.signalCode !== null) return
        child.kill('SIGKILL')
        await once(child, 'exit')
      })
    }
    return crowd
  }

  /** How many trading sockets are open. */
  get open(): number {
    return this.#open.size
  }

  #note(change: PageChange): void {
    this.changes.push(change)
    if (change.state === 'open') this.#open.add(change.page)
    else this.#open.delete(change.page)
  }
}
