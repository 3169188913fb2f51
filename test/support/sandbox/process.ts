import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { COMPILED, nodeCommand } from '../server/settings.ts'
import { nextEvent, within } from '../time/until.ts'
import { CLIENT_ID } from '../server/world.ts'

const SERVE = fileURLToPath(new URL('../../../sandbox/serve.ts', import.meta.url))

/** The provider and the trading service in a process of their own, which can be killed. */
export interface SandboxProcess {
  readonly providerUrl: string
  /** `host:port` of the trading service. */
  readonly upstreamHost: string
  /** Sends SIGKILL, so that no connection is closed properly. */
  kill(): Promise<void>
  /** Starts it again, on the same ports. */
  restart(): Promise<void>
}

/** Starts one that ends with the test. */
export async function sandboxProcess(t: Test, publicUrl: string): Promise<SandboxProcess> {
  const [providerPort, upstreamPort] = [await freePort(), await freePort()]
  const env = {
    ...COMPILED,
    PUBLIC_URL: publicUrl,
    CLIENT_ID,
    PROVIDER_PORT: String(providerPort),
    UPSTREAM_PORT: String(upstreamPort),
  }
  const [command, ...words] = nodeCommand()
  const start = () => {
    const child = spawn(command, [...words, SERVE], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    // It prints its addresses once it listens.
    return { child, exited: once(child, 'exit'), listening: nextEvent(child.stdout, 'data') }
  }
  let running = start()
  const kill = async (): Promise<void> => {
    running.child.kill('SIGKILL')
    await within(running.exited, 'the sandbox is killed')
  }
  t.teardown(kill)
  await running.listening
  return {
    providerUrl: `http://127.0.0.1:${providerPort}`,
    upstreamHost: `127.0.0.1:${upstreamPort}`,
    kill,
    async restart() {
      running = start()
      await running.listening
    },
  }
}
