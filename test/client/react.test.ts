import { build } from 'esbuild'
import { test } from 'tap'
import { TradingService } from '../support/trading-service.ts'
import { testChromium } from '../support/chromium.ts'
import { relayWorld } from '../support/relay-world.ts'
import { until } from '../support/until.ts'

const DIST = new URL('../../client/dist/', import.meta.url).pathname
const texts = (text: string): string =>
  `[...document.querySelectorAll('.price')].every((each) => each.textContent === '${text}')`

await test('two mounted React components share one connection and one stream, even in StrictMode', async (t) => {
  const { outputFiles } = await build({
    stdin: {
      contents: `
        import { createElement as h, StrictMode, useState } from 'react'
        import { createRoot } from 'react-dom/client'
        import { createClient } from './client.js'
        import { useSession, useSubscription } from './react.js'
        const client = createClient()
        function Price({ symbol }) {
          const { data, status } = useSubscription(client, { ticks: symbol })
          return h('p', { className: 'price' }, symbol, ' ', data ? data.tick.quote : 'none', ' ', status.state)
        }
        function App() {
          const [symbol, choose] = useState('R_100')
          const session = useSession(client)
          return h('main', null, h('h1', null, session.status), h(Price, { symbol }), h(Price, { symbol }),
            h('button', { onClick: () => choose('R_50') }, 'other'))
        }
        createRoot(document.body).render(h(StrictMode, null, h(App)))`,
      resolveDir: DIST,
    },
    bundle: true,
    format: 'iife',
    define: { 'process.env.NODE_ENV': '"development"' },
    write: false,
  })
  const app = outputFiles[0]?.text ?? ''
  const page = '<!doctype html><title>app</title><body></body><script defer src="/app.js"></script>'
  const world = await relayWorld(t, {
    anonymous: true,
    settings: { STATIC_DIR: t.testdir({ 'index.html': page, 'app.js': app }) },
  })
  const service = new TradingService(world.upstream)
  const tab = await (await testChromium(t)).newPage({ bypassCSP: true })
  await tab.goto(world.server.url)
  await tab.waitForFunction(`document.querySelector('h1')?.textContent === 'anonymous' && ${texts('R_100 0 open')}`)
  service.tick(3)
  await tab.waitForFunction(texts('R_100 3 open'))
  t.same([service.connections, service.count('ticks'), service.streams], [1, 1, 1])
  await tab.click('button')
  await tab.waitForFunction(texts('R_50 0 open'))
  await until(() => service.streams === 1)
  t.same([service.connections, service.count('ticks'), service.count('forget')], [1, 2, 1])
})
