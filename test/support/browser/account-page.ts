import type { Page } from 'puppeteer-core'
import type { Test } from 'tap'
import { TradingService } from '../client/trading-service.ts'
import { until } from '../time/until.ts'
import { answerJson } from '../upstream/scripted-upstream.ts'
import { startWorld } from '../world.ts'
import { logInBy, testWindow, type BrowserName } from './browsers.ts'
import { documentedSample } from './documented-samples.ts'

const ACCOUNTS = { data: [{ account_id: 'VRTC100', balance: 1000 }] }
/** A page without a script. */
export const OTHER = '<!doctype html><title>other</title><p>Another page</p>'

/** Notes what becomes of the sockets of a page, each of which asks for the time when it opens. */
const WATCH_SOCKETS = `{
  const { WebSocket } = globalThis
  globalThis.sockets = []
  globalThis.events = []
  globalThis.WebSocket = class extends WebSocket {
    constructor(...options) {
      super(...options)
      sockets.push(this)
      this.addEventListener('open', () => this.send('{"time":1,"req_id":1}'))
      this.addEventListener('message', ({ data }) => events.push('answer ' + JSON.parse(data).req_id))
      this.addEventListener('close', ({ code, reason }) => events.push(('end ' + code + ' ' + reason).trim()))
    }
  }
}`

/** The value of an expression; undefined while the page navigates. */
export function read(page: Page, expression: string): Promise<unknown> {
  return page.evaluate(expression).catch(() => undefined)
}

/** Resolves once the page shows a text. */
export async function shows(page: Page, text: string): Promise<void> {
  await until(async () => String(await read(page, 'document.body?.innerText')).includes(text), text)
}

async function isAt(page: Page, path: string): Promise<void> {
  await until(async () => (await read(page, 'location.pathname + location.search')) === path, path)
}

/** Leaves for another page of the site. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate(`void (location.href = '${path}')`)
  await isAt(page, path)
}

/** Goes back to the page before, which has this path. */
export async function goBack(page: Page, path: string): Promise<void> {
  await page.evaluate('history.back()')
  await isAt(page, path)
}

/**
 * A user who sees account.html of docs/frontends.md.
 * @param without functions of the browser without which its script does
 */
export async function accountPage(t: Test, name: BrowserName, without: readonly string[] = []) {
  const lacking = without.map((each) => `const ${each} = function () {}\n`).join('')
  const STATIC_DIR = t.testdir({
    'account.html': documentedSample('account.html'),
    'account.js': lacking + documentedSample('account.js'),
    'other.html': OTHER,
  })
  const { server, upstream, metric } = await startWorld(t, { upstream: 'scripted', settings: { STATIC_DIR } })
  upstream.onRest = (_request, response) => answerJson(response, 200, ACCOUNTS)
  const service = new TradingService(upstream)
  const page = await (await testWindow(t, name)).newPage()
  await page.evaluateOnNewDocument(WATCH_SOCKETS)
  await logInBy(page, `${server.url}/auth/login?return_to=/account.html`)
  await shows(page, 'VRTC100')
  /** The first event of the socket of the page. */
  const first = async (): Promise<unknown> => {
    await until(async () => Boolean(await read(page, 'events[0]')), 'an event of a socket')
    return page.evaluate('events[0]')
  }
  return { page, service, first, sockets: async () => (await metric('bff_relays')).get('kind="demo"') }
}
