import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endWithProcess } from './end-with-process.ts'
import { answers, freePort } from './listening.ts'

/** A redis-server on a port of this machine that stores nothing on disk. */
export interface RedisProcess {
  readonly url: string
  readonly port: number
  readonly process: ChildProcess
  /** Kills it and removes its folder. */
  close(): Promise<void>
}

/**
 * Starts redis-server from PATH.
 * @param more additional command-line options
 * @param port any free port by default
 * @param file a configuration file, which a Sentinel needs
 * @throws Error if it is not installed or does not listen in time
 */
export async function startRedis(more: readonly string[] = [], port?: number, file?: string): Promise<RedisProcess> {
  const dir = await mkdtemp(join(tmpdir(), 'bff-redis-'))
  const chosen = port ?? (await freePort())
  const options = ['--port', String(chosen), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', dir]
  const child = spawn('redis-server', [...(file === undefined ? [] : [file]), ...options, ...more], {
    stdio: 'ignore',
  })
  endWithProcess(child)
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
