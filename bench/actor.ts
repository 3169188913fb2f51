import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Program } from './program.ts'

/** A program in bench/load that executes orders, and replies to each when it has finished. */
export class Actor<Order extends object | string, Reply> {
  readonly program: Program

  /** @param file its name in bench/load @param options Node.js options */
  constructor(name: string, file: string, options: readonly string[] = []) {
    const path = fileURLToPath(new URL(`load/${file}`, import.meta.url))
    this.program = new Program(name, process.execPath, [...options, path], { ipc: true, on: 'others' })
  }

  /** Executes an order. @throws Error if the process exits meanwhile */
  async order(order: Order): Promise<Reply> {
    const { child } = this.program
    const settled = new AbortController()
    const { signal } = settled
    const exited = async (): Promise<never> => {
      await once(child, 'exit', { signal })
      throw new Error(`${this.program.name} exited: ${this.program.logTail()}`)
    }
    child.send(order)
    const message = await Promise.race([once(child, 'message', { signal }), exited()])
    settled.abort()
    const [reply] = message as [Reply]
    return reply
  }
}
