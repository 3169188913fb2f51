import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { WebSocketServer } from 'ws'
import { closeNow, freePort, listen } from '../../../sandbox/listening.ts'
import { sendForm } from '../browser/chromium.ts'
import { until } from '../time/until.ts'
import { runNpm, type RunningCommand } from './command.ts'

/** A page that shows whether its user is logged in, what a call returns, and the states of its sockets. */
export const page = (client: string, baseUrl: string): string => `<!doctype html>
<title>A page of its own</title>
<a id="login">Log in</a> <p id="session"></p><p id="account"></p><p id="balance"></p><p id="price"></p><p id="reload"></p>
<script type="module">
  import { createClient } from '${client}'
  const client = createClient({ baseUrl: '${baseUrl}' })
  const show = (id, text) => (document.querySelector('#' + id).textContent = text)
  document.querySelector('#login').href = client.session.loginUrl()
  client.publicSocket().subscribe({ ticks: 'R_100' }, ({ tick }) => show('price', tick.quote))
  client.session.subscribe(async () => {
    const { status } = client.session.get()
    show('session', status)
    if (status !== 'active') return
    const { data: [account] } = await (await client.api('/trading/v1/options/accounts')).json()
    show('account', account.account_id)
    client.tradingSocket(account.account_id).subscribe({ balance: 1 }, ({ balance }) => show('balance', balance.balance))
  })
  const reload = new WebSocket('/reload')
  reload.onmessage = ({ data }) => show('reload', data)
</script>`

/** A development server on a port of its own, which knows no host but localhost. @returns its origin */
export async function developmentServer(t: Test, html: (origin: string) => string): Promise<string> {
  const server = createServer(({ headers }, response) => {
    if (headers.host?.startsWith('localhost:') !== true) response.writeHead(403).end()
    else response.setHeader('content-type', 'text/html').end(html(origin))
  })
  new WebSocketServer({ server, path: '/reload' }).on('connection', (socket) => socket.send('will reload'))
  const origin = `http://localhost:${await listen(server, 0, '127.0.0.1')}`
  t.teardown(() => closeNow(server))
  return origin
}

interface Sandbox extends RunningCommand {
  readonly ports: Readonly<Record<string, number>>
}

/** Runs `npm run sandbox` with these options on ports of its own, until it says where the page is. */
export async function runSandbox(t: Test, args: readonly string[], env: Record<string, string> = {}): Promise<Sandbox> {
  const ports: Record<string, number> = {}
  for (const name of ['PORT', 'OPS_PORT', 'PROVIDER_PORT', 'UPSTREAM_PORT']) ports[name] = await freePort()
  return { ...(await printing(runNpm(t, ['sandbox', '--', ...args], { ...asText(ports), ...env }))), ports }
}

const asText = (ports: Readonly<Record<string, number>>): Record<string, string> =>
  Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]))

async function printing(command: RunningCommand): Promise<RunningCommand> {
  const { output } = command
  await until(() => output.stdout.includes('\n') || output.stderr.includes('\n'), 'the sandbox prints', 30_000)
  return command
}

const shows = (tab: Page, id: string, text: RegExp): Promise<void> =>
  tab.locator(`#${id}`).filter({ hasText: text }).waitFor()

/** Logs in, and waits for what a call, a trading socket and a public socket bring. */
export async function useThePage(tab: Page): Promise<void> {
  await shows(tab, 'session', /^anonymous$/)
  await tab.click('#login')
  await sendForm(tab)
  await shows(tab, 'session', /^active$/)
  await shows(tab, 'account', /^DOT\d+/)
  await shows(tab, 'balance', /^[\d.]+$/)
  await shows(tab, 'price', /^[\d.]+$/)
  await shows(tab, 'reload', /^will reload$/)
}

export async function listens(port: number, host: string): Promise<boolean> {
  const socket = connect(port, host)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
