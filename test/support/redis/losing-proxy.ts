import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'
import type { RedisProcess } from '../../../sandbox/redis-process.ts'

/** Which commands are meant, by what a server sends to Redis at once. */
type Meant = (sent: string) => boolean

/** The network between a server and its Redis. It loses single replies, as a connection does that breaks just before one arrives. */
export class LosingProxy {
  readonly url: string
  /** How late each reply is (ms). */
  lateMs = 0
  readonly #sockets = new Set<Socket>()
  #meant: Meant = () => false
  #lost = Promise.withResolvers<void>()
  #isDown = false

  private constructor(port: number) {
    this.url = `redis://127.0.0.1:${port}`
  }

  /** Starts one on a free port. It ends with the test. */
  static async start(t: Test, redis: Pick<RedisProcess, 'port'>): Promise<LosingProxy> {
    const server = createServer((socket) => proxy.#join(socket, redis.port))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const proxy = new LosingProxy((server.address() as AddressInfo).port)
    t.teardown(() => {
      server.close()
      for (const socket of proxy.#sockets) socket.destroy()
    })
    return proxy
  }

  /** While this is true, there are no connections. */
  set isDown(isDown: boolean) {
    this.#isDown = isDown
    if (isDown) for (const socket of this.#sockets) socket.destroy()
  }

  /** Loses the reply to the next command that is meant: Redis has run it when this resolves. */
  loseReply(meant: Meant): Promise<void> {
    this.#meant = meant
    this.#lost = Promise.withResolvers()
    return this.#lost.promise
  }

  #join(server: Socket, port: number): void {
    if (this.#isDown) return void server.destroy()
    const redis = connect(port, '127.0.0.1')
    let isLosing = false
    for (const socket of [server, redis]) {
      this.#sockets.add(socket)
      socket
        .on('error', () => undefined)
        .on('close', () => {
          this.#sockets.delete(socket)
          server.destroy()
          redis.destroy()
        })
    }
    server.on('data', (sent: Buffer) => {
      if (this.#meant(sent.toString('latin1'))) {
        this.#meant = () => false
        isLosing = true
      }
      redis.write(sent)
    })
    redis.on('data', (reply: Buffer) => {
      if (!isLosing && this.lateMs > 0) return void setTimeout(() => server.write(reply), this.lateMs).unref()
      if (!isLosing) return void server.write(reply)
      server.destroy()
      this.#lost.resolve()
    })
  }
}
