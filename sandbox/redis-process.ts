import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A redis-server of our own: on a free port of this machine, keeping nothing on disk. */
export interface RedisProcess {
  readonly url: string
  readonly port: number
  readonly process: ChildProcess
  /** Stops it and removes its folder. */
  close(): Promise<void>
}

const START_MS = 10_000

/**
 * Starts redis-server from PATH.
 * @param more further options, as on its command line
 * @param file a configuration file, which a Sentinel needs
 * @throws Error when it is not installed or does not answer in time
 */
export async function startRedis(
  more: readonly string[] = [],
  port?: number,
  file?: string,
): Promise<RedisProcess> {
  const dir = await mkdtemp(join(tmpdir(), 'bff-redis-'))
  const chosen = port ?? (await freePort())
  const options = [
    '--port',
    String(chosen),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    '--dir',
    dir,
  ]
  const child = spawn('redis-server', [...(file === undefined ? [] : [file]), ...options, ...more], {
    stdio: 'ignore',
  })
  const failed = once(child, 'error').then(([error]: unknown[]) => {
    throw error
  })
  await Promise.race([answers(chosen), failed])
  return {
    url: `redis://127.0.0.1:${chosen}`,
    port: chosen,
    process: child,
    async close() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
      await rm(dir, { recursive: true, force: true })
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Resolves when somebody listens on a port of this machine. */
async function answers(port: number): Promise<void> {
  const giveUpAt = Date.now() + START_MS
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return
    } catch (error) {
      if (Date.now() > giveUpAt) throw error
      await new Promise((resolve) => void setTimeout(resolve, 20))
    } finally {
      socket.destroy()
    }
  }
}
