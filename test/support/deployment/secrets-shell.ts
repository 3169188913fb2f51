import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { BrowserSocket } from '../browser/browser-socket.ts'
import { JarBrowser } from '../browser/jar-browser.ts'
import { OPS_TOKEN } from '../login/identity.ts'
import { isLoggedIn, logInThere, tokenEndpoint } from '../login/token-endpoint.ts'
import { ready, serverProcess, type ServerProcess } from '../server/server-process.ts'
import { ALONE } from '../server/settings.ts'
import { makeSecrets } from './files.ts'
import { untilSlow as until } from '../time/until.ts'

/** A shell that keeps its state between commands, in a folder with the secrets of make-secrets.sh. */
export class Shell {
  readonly dir: string
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>
  #runs = 0

  constructor(t: Test) {
    this.dir = t.testdir({})
    makeSecrets(join(this.dir, 'deploy/secrets'))
    this.#child = spawn('bash', ['--norc'], { cwd: this.dir, stdio: ['pipe', 'pipe', 'inherit'] })
    const { stdout } = this.#child
    if (stdout === null) throw new Error('the shell has no stdout')
    this.#lines = createInterface(stdout)[Symbol.asyncIterator]()
    t.teardown(async () => {
      this.#child.kill('SIGKILL')
      await once(this.#child, 'exit')
    })
  }

  /** Runs these commands. @returns the lines that they print */
  async run(commands: string): Promise<string[]> {
    const end = `end ${++this.#runs}`
    this.#child.stdin?.write(`${commands}\necho '${end}'\n`)
    const printed: string[] = []
    for (;;) {
      const { value, done } = await this.#lines.next()
      if (done === true) throw new Error('the shell has exited')
      if (value === end) return printed
      printed.push(value)
    }
  }

  secret(name: string): string {
    return readFileSync(join(this.dir, 'deploy/secrets', name), 'utf8').trim()
  }
}

/**
 * Two instances with the secrets of this shell, sockets at both, and a browser that is logged in.
 * @param show the documented command that shows what an instance has
 */
export async function startTwo(t: Test, shell: Shell, show: string) {
  const endpoint = await tokenEndpoint(t)
  const port = await freePort()
  const settings = {
    ...ALONE,
    PUBLIC_URL: `http://localhost:${port}`,
    AUTH_URL: endpoint.url,
    OPS_TOKEN,
    SESSION_SECRETS_FILE: join(shell.dir, 'deploy/secrets/session-secrets'),
    REDIS_URL_FILE: join(shell.dir, 'deploy/secrets/redis-url'),
  }
  const start = async (ownPort: number): Promise<ServerProcess> => {
    const server = await serverProcess(t, { ...settings, PORT: String(ownPort) })
    t.ok(await ready(server), 'an instance has started')
    return server
  }
  const servers = [await start(port), await start(await freePort())]
  const logIn = async (): Promise<JarBrowser> => {
    const browser = new JarBrowser()
    const { url, response, body } = await logInThere({ browser, server: { url: settings.PUBLIC_URL } })
    if (!(await isLoggedIn(browser, settings.PUBLIC_URL))) {
      throw new Error(`the login ended at ${url.href} with ${response.status}: ${body.slice(0, 500)}`)
    }
    return browser
  }
  /** Whether both instances regard the browser as logged in. */
  const isLoggedInToBoth = async (browser: JarBrowser): Promise<boolean> => {
    const results = servers.map((server) => isLoggedIn(browser, `http://localhost:${server.port}`).catch(() => false))
    return (await Promise.all(results)).every(Boolean)
  }
  const browser = await logIn()
  const origin = settings.PUBLIC_URL
  const cookie = browser.cookieHeader(new URL(origin), new URL(origin))
  const closes: number[] = []
  for (const server of servers) {
    const { socket } = await new BrowserSocket(`ws://localhost:${server.port}/ws/session`, { origin, cookie }).opened()
    socket.on('close', (code) => closes.push(code))
    t.teardown(() => socket.terminate())
  }
  /** What the documented command shows of a setting: the fingerprint at each place, of each instance. */
  const shown = async (setting: string): Promise<Map<string, string>[]> => {
    const all: Map<string, string>[] = []
    for (const { opsPort } of servers) {
      const lines = await shell.run(show.replace('9461', String(opsPort)))
      const found = lines.map((line) => /setting="(\w+)",place="(\d)",fingerprint="(\w{8})"} 1$/.exec(line))
      all.push(
        new Map(found.flatMap((each) => (each?.[1] === setting ? [[each[2] ?? '', each[3] ?? ''] as const] : []))),
      )
    }
    return all
  }
  return {
    logIn,
    /** Starts another instance with what the files have now. */
    startAnother: async () => start(await freePort()),
    opsUrls: servers.map(({ opsPort }) => `http://127.0.0.1:${opsPort}`),
    isLoggedInToBoth,
    browser,
    closes,
    placesOf: async (setting: string) => (await shown(setting)).flatMap((each) => Array.from(each.keys())),
    /** Waits until both instances show the same fingerprint, another one than before. */
    async untilAlike(setting: string, place: string, before?: string): Promise<string> {
      let print: string | undefined
      await until(async () => {
        const [one, other] = (await shown(setting)).map((each) => each.get(place))
        print = one === other ? one : undefined
        return print !== undefined && print !== before
      }, `both instances have the same fingerprint of ${setting} at ${place}`)
      return print ?? ''
    },
    untilLoggedIn: (browser: JarBrowser, when: string): Promise<void> =>
      until(() => isLoggedInToBoth(browser), `the browser is logged in to both instances ${when}`),
  }
}
