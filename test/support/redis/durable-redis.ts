import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { endWithProcess } from '../../../sandbox/end-with-process.ts'
import { answers } from '../../../sandbox/listening.ts'

/** A redis-server with an append-only file that can be killed and started again, on the same port and with its data. */
export class DurableRedis {
  readonly port: number
  readonly #dir: string
  #process: ChildProcess

  private constructor(port: number, dir: string) {
    this.port = port
    this.#dir = dir
    this.#process = this.#spawn()
  }

  /** Starts one that ends with the test. @param lines more lines of its configuration */
  static async start(t: Test, port: number, lines: readonly string[]): Promise<DurableRedis> {
    const dir = await mkdtemp(join(tmpdir(), 'bff-durable-redis-'))
    const own = [`port ${port}`, 'bind 127.0.0.1', `dir ${dir}`, 'save ""', 'repl-diskless-sync-delay 0']
    // Otherwise it puts writes off while the disk is busy, and loses for two seconds what it has replied to.
    const kept = ['appendonly yes', 'appendfsync no']
    await writeFile(join(dir, 'redis.conf'), [...own, ...kept, ...lines, ''].join('\n'))
    const redis = new DurableRedis(port, dir)
    t.teardown(async () => {
      await redis.kill()
      await rm(dir, { recursive: true, force: true })
    })
    await answers(port)
    return redis
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** Kills it as a crash does. */
  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const exited = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await exited
  }

  /** Starts it again after {@link kill}, unless somebody else has. */
  async restart(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) this.#process = this.#spawn()
    await answers(this.port)
  }

  /** Removes its data, so that it starts empty after {@link kill}. */
  async forget(): Promise<void> {
    await rm(join(this.#dir, 'appendonlydir'), { recursive: true, force: true })
  }

  freeze(): void {
    this.#process.kill('SIGSTOP')
  }

  thaw(): void {
    this.#process.kill('SIGCONT')
  }

  #spawn(): ChildProcess {
    // Sentinel has a server write its role into its configuration, so that it has the same role after a restart.
    const child = spawn('redis-server', [join(this.#dir, 'redis.conf')], { stdio: 'ignore' })
    endWithProcess(child)
    return child
  }
}
