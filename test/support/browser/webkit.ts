import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Test } from 'tap'
import { answers, freePort } from '../../../sandbox/listening.ts'
import { nextEvent, untilSlow } from '../time/until.ts'

const TIMEOUT_MS = 30_000

/** The answer to each command of WebDriver. */
interface Reply {
  readonly value: unknown
}

/** A window of WebKitGTK's MiniBrowser, with cookies and storage of its own. Its commands go to the tab that was chosen last. */
export class WebKitWindow {
  readonly #session: string

  private constructor(session: string) {
    this.#session = session
  }

  /** Starts one that trusts any certificate, and ends with the test. @throws Error when it is not installed */
  static async start(t: Test): Promise<WebKitWindow> {
    const screen = spawn('Xvfb', ['-displayfd', '1', '-nolisten', 'tcp'], { stdio: ['ignore', 'pipe', 'ignore'] })
    endWith(t, screen)
    const [display] = (await Promise.race([once(screen.stdout, 'data'), failure(screen)])) as [Buffer]
    const port = await freePort()
    const driver = spawn('WebKitWebDriver', [`--port=${port}`], {
      stdio: 'ignore',
      env: { ...process.env, DISPLAY: `:${display.toString().trim()}`, LIBGL_ALWAYS_SOFTWARE: '1' },
    })
    endWith(t, driver)
    await Promise.race([answers(port), failure(driver)])
    const capabilities = { alwaysMatch: { acceptInsecureCerts: true } }
    const root = `http://127.0.0.1:${port}/session`
    const { sessionId } = (await command(root, 'POST', { capabilities })) as { sessionId: string }
    t.teardown(() => command(`${root}/${sessionId}`, 'DELETE'))
    return new WebKitWindow(`${root}/${sessionId}`)
  }

  /** Opens an address, and waits until it is loaded. */
  async goto(url: string): Promise<void> {
    await command(`${this.#session}/url`, 'POST', { url })
  }

  /** The value of an expression in the page. */
  async evaluate(expression: string): Promise<unknown> {
    return command(`${this.#session}/execute/sync`, 'POST', { script: `return (${expression})`, args: [] })
  }

  /** Runs statements in the page. */
  async run(statements: string): Promise<void> {
    await command(`${this.#session}/execute/sync`, 'POST', { script: statements, args: [] })
  }

  /** Resolves once an expression is true; a page that is being left has no value. */
  async is(expression: string): Promise<void> {
    await untilSlow(async () => (await this.evaluate(expression).catch(() => false)) === true, expression)
  }

  /** Clicks an element once there is one. */
  async click(selector: string): Promise<void> {
    await this.is(`Boolean(document.querySelector('${selector}:not([hidden], [disabled])'))`)
    await this.run(`document.querySelector('${selector}').click()`)
  }

  /** The tab of the commands. */
  async tab(): Promise<string> {
    return (await command(`${this.#session}/window`, 'GET')) as string
  }

  /** Opens another tab, and chooses it. */
  async newTab(): Promise<void> {
    const { handle } = (await command(`${this.#session}/window/new`, 'POST', { type: 'tab' })) as { handle: string }
    await this.choose(handle)
  }

  /** Chooses a tab. */
  async choose(handle: string): Promise<void> {
    await command(`${this.#session}/window`, 'POST', { handle })
  }
}

async function command(url: string, method: string, body?: unknown): Promise<unknown> {
  const answer = await fetch(url, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const { value } = (await answer.json()) as Reply
  if (!answer.ok) throw new Error(`WebDriver: ${JSON.stringify(value)}`)
  return value
}

function endWith(t: Test, child: ChildProcess): void {
  t.teardown(async () => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.kill()
    await nextEvent(child, 'exit')
  })
}

/** Rejects if a program cannot be started. */
function failure(child: ChildProcess): Promise<never> {
  return new Promise((_resolve, reject) => {
    child.once('error', (cause) =>
      reject(new Error('This test needs WebKit: apt-get install webkit2gtk-driver xvfb', { cause })),
    )
  })
}
