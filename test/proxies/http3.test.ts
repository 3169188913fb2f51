import { createHash, X509Certificate } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { CHROMIUM, CHROMIUM_ARGUMENTS, sendForm, sessionIs } from '../support/browser/chromium.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { proxyProcess } from '../support/proxies/process.ts'
import { testCa } from '../support/redis/tls.ts'
import { startWorld } from '../support/world.ts'

/** What leads to a server, over HTTP/3 to the browser. */
interface Front {
  readonly command: Parameters<typeof proxyProcess>[1]
  readonly words: (config: string) => string[]
  readonly config: (dir: string, port: number, to: number) => string
}

const FRONTS: Readonly<Record<string, Front>> = {
  Caddy: {
    command: 'caddy',
    words: (config) => ['run', '--adapter', 'caddyfile', '--config', config],
    config: (dir, port, to) => `{
  admin off
  auto_https disable_redirects
}
https://localhost:${port} {
  tls ${dir}/pem ${dir}/pem
  reverse_proxy 127.0.0.1:${to} {
    header_up X-Forwarded-For {remote_host}
  }
}
`,
  },
  haproxy: {
    command: 'haproxy',
    words: (config) => ['-db', '-f', config],
    config: (dir, port, to) => `defaults
  mode http
  timeout client 75s
  timeout connect 3s
  timeout server 75s
frontend front
  bind :::${port} v4v6 ssl crt ${dir}/pem alpn h2,http/1.1
  bind quic4@:${port} ssl crt ${dir}/pem alpn h3
  bind quic6@:${port} ssl crt ${dir}/pem alpn h3
  option forwardfor
  default_backend back
backend back
  server one 127.0.0.1:${to}
`,
  },
  nginx: {
    command: 'nginx',
    words: (config) => ['-c', config, '-e', 'stderr'],
    config: (dir, port, to) => `user root; daemon off; pid ${dir}/pid; events { }
http {
  client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy; fastcgi_temp_path ${dir}/fastcgi;
  uwsgi_temp_path ${dir}/uwsgi; scgi_temp_path ${dir}/scgi; access_log off;
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  server {
    listen ${port} ssl;
    listen [::]:${port} ssl;
    listen ${port} quic;
    listen [::]:${port} quic;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_certificate ${dir}/pem;
    ssl_certificate_key ${dir}/pem;
    proxy_http_version 1.1;
    # Not $http_host, which is empty over HTTP/3.
    proxy_set_header Host $host:${port};
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection_upgrade;
    proxy_buffering off;
    location / { proxy_pass http://127.0.0.1:${to}; }
  }
}
`,
  },
}

/** The protocols of the page's requests to its own server, each once. */
const PROTOCOLS = `[...new Set(performance.getEntries()
  .filter(({ nextHopProtocol, name }) => nextHopProtocol && name.startsWith(location.origin))
  .map(({ nextHopProtocol }) => nextHopProtocol))]`

async function secureWorld(t: Test, { command, words, config }: Front) {
  const dir = t.testdir({})
  const pem = await readFile((await testCa(t)).pemFile, 'utf8')
  await writeFile(join(dir, 'pem'), pem)
  const [port, to] = [await freePort(), await freePort()]
  await writeFile(join(dir, 'config'), config(dir, port, to))
  const { stop } = await proxyProcess(t, command, words(join(dir, 'config')), { port, log: join(dir, 'log') })
  const url = `https://localhost:${port}`
  const settings = { STATIC_DIR: DEMO_PAGE, PUBLIC_URL: url, TRUST_PROXY: '127.0.0.1' }
  const world = await startWorld(t, { port: to, settings })
  const spki = new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' })
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      ...CHROMIUM_ARGUMENTS.filter((each) => each !== '--disable-quic'),
      `--origin-to-force-quic-on=localhost:${port}`,
      `--ignore-certificate-errors-spki-list=${createHash('sha256').update(spki).digest('base64')}`,
    ],
  })
  t.teardown(() => browser.close())
  return { ...world, url, browser, stop }
}

const chosen = process.env['HTTP3'] ?? 'Caddy'

for (const [name, front] of Object.entries(FRONTS).filter(([each]) => each === chosen)) {
  await test(`Chromium over HTTP/3 to ${name}: a login, a price, calls, and a logout of which another tab learns`, async (t) => {
    const { url, browser, metric, stop } = await secureWorld(t, front)
    const window = await browser.newContext()
    const page = await window.newPage()
    await page.goto(`${url}/`)
    await sessionIs(page, 'anonymous')
    await page.click('[data-testid=login]')
    await sendForm(page)
    await sessionIs(page, 'authenticated')
    await page.locator('[data-testid=accounts] > *').first().waitFor()
    await page.getByTestId('price').getByText(/\d/).waitFor()
    t.ok((await metric('bff_relays')).size > 0, 'a socket is open, over TCP')
    t.same(await page.evaluate(PROTOCOLS), ['h3'])
    const other = await window.newPage()
    await other.goto(`${url}/`)
    await sessionIs(other, 'authenticated')
    await other.click('[data-testid=logout]')
    await sessionIs(page, 'anonymous')
    await browser.close()
    await stop('SIGTERM')
  })
}
