import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A network between a browser and a server that can stall without closing a connection. */
export class StallingProxy {
  readonly port: number
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  readonly #lost = new Set<Socket>()
  #isStalled = false
  #areRepliesStalled = false

  private constructor(port: number) {
    this.port = port
  }

  /** Starts a proxy on a free port. It ends with the test. @param port returns the port of the server */
  static async start(t: Test, port: () => number, host = '127.0.0.1'): Promise<StallingProxy> {
    const server = createServer((socket) => proxy.#join(socket, connect(port(), '127.0.0.1')))
    await once(server.listen(0, host), 'listening')
    const proxy = new StallingProxy((server.address() as AddressInfo).port)
    t.teardown(() => {
      server.close()
      for (const socket of [...[...proxy.#pairs].flat(), ...proxy.#lost]) socket.destroy()
    })
    return proxy
  }

  /** While this is true, nothing passes. Withheld data arrives afterwards. */
  set isStalled(isStalled: boolean) {
    this.#isStalled = isStalled
    for (const pair of this.#pairs) this.#apply(pair)
  }

  /** Loses every connection as a router does that forgets it: the server's side closes, and the browser hears nothing. */
  forget(): void {
    for (const [browser, server] of this.#pairs) {
      this.#lost.add(browser.pause())
      server.removeAllListeners('close').destroy()
    }
    this.#pairs.clear()
  }

  /** While this is true, nothing from the server passes. */
  set areRepliesStalled(areStalled: boolean) {
    this.#areRepliesStalled = areStalled
    for (const pair of this.#pairs) this.#apply(pair)
  }

  /** Breaks all connections. Withheld data is lost. */
  cut(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy()
  }

  #apply([browser, server]: readonly [Socket, Socket]): void {
    if (this.#isStalled) browser.pause()
    else browser.resume()
    if (this.#isStalled || this.#areRepliesStalled) server.pause()
    else server.resume()
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
    }
    this.#apply(pair)
  }
}
