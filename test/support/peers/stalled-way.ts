import { spawn } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'
import { endWithProcess } from '../../../sandbox/end-with-process.ts'
import { nodeCommand } from '../server/settings.ts'
import { nextEvent } from '../time/until.ts'

/** The fewest that Linux takes. One more connection fits. */
const BACKLOG = 1

const PASS_ON = `
import { connect, createServer } from 'node:net'
const [host, port, target] = process.argv.slice(1)
createServer((near) => {
  const far = connect(target, '127.0.0.1')
  for (const [one, other] of [[near, far], [far, near]]) one.on('error', () => other.destroy()).pipe(other)
}).listen({ host, port, backlog: ${BACKLOG} }, function () { console.log(this.address().port) })`

/** A way to a server of this machine, whose first packets can be lost. */
export interface StalledWay {
  readonly port: number
  /** From now on every packet that opens a connection is lost. */
  readonly stall: () => Promise<void>
  /** Ends a stall. */
  readonly resume: () => void
  /**
   * Ends a stall once a connection was begun, whose first packet is then lost, and is repeated after a second.
   * @param forMs how long after that; later packets may be lost, too
   */
  readonly loseOne: (forMs?: number) => Promise<void>
}

/** Passes connections at this address on to a port of this machine, until the test ends. */
export async function stalledWay(t: Test, target: number, address = '127.0.0.1', port = 0): Promise<StalledWay> {
  const [command, ...words] = nodeCommand()
  const options = ['--input-type=module', '-e', PASS_ON, address, String(port), String(target)]
  const child = spawn(command, [...words, ...options], { stdio: ['ignore', 'pipe', 'inherit'] })
  endWithProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  const [text] = (await nextEvent(child.stdout, 'data')) as [Buffer]
  const found = Number(text)
  const fillers: Socket[] = []
  t.teardown(() => fillers.map((filler) => filler.destroy()))
  const stall = async (): Promise<void> => {
    child.kill('SIGSTOP')
    while (fillers.length <= BACKLOG) {
      const filler = connect(found, address).on('error', () => undefined)
      await once(filler, 'connect')
      fillers.push(filler)
    }
  }
  const resume = (): void => {
    for (const filler of fillers.splice(0)) filler.destroy()
    child.kill('SIGCONT')
  }
  return {
    port: found,
    stall,
    resume,
    async loseOne(forMs = 0) {
      await stall()
      const noteSocket = (message: unknown): void => {
        const { socket } = message as { socket: Socket }
        socket.on('connectionAttempt', (_address, attempted) => {
          if (attempted !== found) return
          unsubscribe('net.client.socket', noteSocket)
          setTimeout(resume, forMs)
        })
      }
      subscribe('net.client.socket', noteSocket)
    },
  }
}
