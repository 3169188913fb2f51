import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { test } from 'tap'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { built } from '../support/recipes/built.ts'
import { installed } from '../support/recipes/recipe.ts'
import { startWorld } from '../support/world.ts'

const TRANSFER = '/api/payment-agents/v1/transfer'
const TRADING = `import { createClient } from 'trading-bff-client'
export const client = createClient()`
/** A page that repeats mutations unless a mutation says otherwise. */
const PAGE = `
import { QueryClientProvider } from '@tanstack/react-query'
import { createElement as h, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError, sessionKey } from 'trading-bff-client'
import { useSession } from 'trading-bff-client/react'
import { forgetOtherSessions, queryClient, useApiQuery } from './query.ts'
import { client } from './trading.ts'
import { useTransfer } from './transfer.ts'

function Transfer() {
  const [amount, setAmount] = useState('1.00')
  const { mutate, isPending, isPaused, isSuccess, error } = useTransfer(async () => false)
  const { data } = useApiQuery('/payment-agents/v1/agent-statistics')
  const told = error instanceof ApiError ? (error.code ?? error.status) : isPaused ? 'paused' : isSuccess ? 'made' : ''
  return h('section', null,
    h('input', { value: amount, onChange: ({ target }: { target: { value: string } }) => setAmount(target.value) }),
    h('button', { disabled: isPending, onClick: () => mutate({ data: { to_nickname: 'somebody', amount, currency: 'USD' } }) }),
    h('output', null, told),
    h('p', null, JSON.stringify(data)))
}

function App() {
  const session = useSession(client)
  return [h('h1', { key: 'status' }, session.status), h(Transfer, { key: sessionKey(session) ?? '' })]
}
queryClient.setDefaultOptions({ mutations: { retry: 3, retryDelay: 0 } })
forgetOtherSessions()
createRoot(document.querySelector('main')!).render(h(QueryClientProvider, { client: queryClient }, h(App)))`

await test('docs/examples/tanstack-query: a transfer is made once, also if its answer is lost, it is refused or clicked offline', async (t) => {
  const recipe = await installed(t, 'tanstack-query')
  await writeFile(join(recipe.dir, 'src/trading.ts'), TRADING)
  const { server } = await startWorld(t, { settings: { STATIC_DIR: await built(recipe, PAGE) } })
  const context = await testChromium(t)
  const page = await context.newPage()
  const keys: (string | undefined)[] = []
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith(TRANSFER)) keys.push(request.headers()['idempotency-key'])
  })
  await page.goto(`${server.url}/auth/login`)
  await sendForm(page)
  await shows(page, 'p', '"transfers":0')

  await page.click('button')
  await shows(page, 'output', 'made')
  await shows(page, 'p', '"transfers":1')

  await page.route(
    `**${TRANSFER}`,
    async (route) => {
      await route.fetch()
      await route.abort()
    },
    { times: 1 },
  )
  await page.click('button')
  await shows(page, 'p', '"transfers":2')
  await shows(page, 'output', 'made')
  t.equal(keys.length, 3)
  t.ok(keys[1] !== undefined && keys[1] === keys[2] && keys[0] !== keys[1], 'the lost transfer kept its key')

  await context.setOffline(true)
  await page.click('button')
  await shows(page, 'output', 'not_sent')
  await context.setOffline(false)

  await page.fill('input', '1000000')
  await page.click('button')
  await shows(page, 'output', '400')
  await shows(page, 'p', '"transfers":2')
  t.equal(keys.length, 4, 'nothing was sent after the network was back, and the refused transfer once')

  await page.evaluate(`fetch('/auth/logout', { method: 'POST', headers: { 'X-CSRF': '1' } })`)
  await shows(page, 'h1', 'anonymous')
  t.same([await page.textContent('output'), await page.textContent('p')], ['', ''])
})

async function shows(page: Page, selector: string, text: string): Promise<void> {
  await page.locator(selector, { hasText: text }).waitFor()
}
