import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A balancer of TCP connections that sends all new ones to one instance. */
export interface Switch {
  readonly port: number
  /** The port of the instance that gets the next connections. */
  target: number
}

/** Starts one that ends with the test. */
export async function startSwitch(t: Test, target: number): Promise<Switch> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (browser) => {
    const instance = connect({ port: state.target, host: '127.0.0.1', noDelay: true })
    browser.pipe(instance).pipe(browser)
    for (const socket of [browser, instance]) {
      sockets.add(socket)
      socket
        .on('error', () => undefined)
        .on('close', () => {
          sockets.delete(socket)
          browser.destroy()
          instance.destroy()
        })
    }
  }).listen(0, '127.0.0.1', 4096)
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const state = { port: (server.address() as AddressInfo).port, target }
  return state
}
