import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A network between a browser and a server that can stall without closing a connection. */
export class StallingProxy {
  readonly port: number
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  #isStalled = false

  private constructor(port: number) {
    this.port = port
  }

  /** Starts a proxy on a free port. It ends with the test. @param port returns the port of the server */
  static async start(t: Test, port: () => number): Promise<StallingProxy> {
    const server = createServer((socket) => proxy.#join(socket, connect(port(), '127.0.0.1')))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const proxy = new StallingProxy((server.address() as AddressInfo).port)
    t.teardown(() => {
      server.close()
      for (const pair of proxy.#pairs) for (const socket of pair) socket.destroy()
    })
    return proxy
  }

  /** While this is true, nothing passes. Withheld data arrives afterwards. */
  set isStalled(isStalled: boolean) {
    this.#isStalled = isStalled
    for (const pair of this.#pairs) for (const socket of pair) this.#apply(socket)
  }

  #apply(socket: Socket): void {
    if (this.#isStalled) socket.pause()
    else socket.resume()
  }

  #join(browser: Socket, server: Socket): void {
    const pair = [browser, server] as const
    this.#pairs.add(pair)
    for (const [from, to] of [pair, [server, browser]] as const) {
      from.on('data', (data) => to.write(data))
      from.on('error', () => undefined)
      from.on('close', () => {
        to.destroy()
        this.#pairs.delete(pair)
      })
      this.#apply(from)
    }
  }
}
