import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import dns from 'node:dns'
import type { Socket } from 'node:net'
import type { Test } from 'tap'

type Answer = (error: Error | null, address: unknown, family?: number) => void

/** A name server that answers nothing about its host before a test lets it, so that connections to it wait. */
export interface SlowNames {
  /** A host that only this name server knows, and no other test of the process: its addresses would be remembered. */
  readonly host: string
  /** The connections that wait for it. */
  readonly waiting: number
  /** Answers that the host is this machine, from now on at once. */
  release(): void
}

let hosts = 0

/** Takes the place of the system's resolver in this process until the test ends. */
export function slowNames(t: Test): SlowNames {
  const { lookup } = dns
  const host = `slow-${++hosts}.test`
  const opened = new Set<Socket>()
  const lookups: (() => void)[] = []
  let isReleased = false
  const answerSlowly = (asked: string, options: { readonly all?: boolean }, answer: Answer): void => {
    if (asked !== host) return void lookup(asked, options as dns.LookupOneOptions, answer)
    const reply = (): void => {
      if (options.all === true) answer(null, [{ address: '127.0.0.1', family: 4 }])
      else answer(null, '127.0.0.1', 4)
    }
    if (isReleased) reply()
    else lookups.push(reply)
  }
  dns.lookup = answerSlowly as typeof lookup
  const noteSocket = (message: unknown): void => void opened.add((message as { socket: Socket }).socket)
  subscribe('net.client.socket', noteSocket)
  t.teardown(() => {
    dns.lookup = lookup
    unsubscribe('net.client.socket', noteSocket)
  })
  return {
    host,
    get waiting() {
      // Node keeps the host of a connection there.
      return [...opened].filter((socket) => socket.connecting && Reflect.get(socket, '_host') === host).length
    },
    release() {
      isReleased = true
      for (const reply of lookups.splice(0)) reply()
    },
  }
}
