import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { edit, installed, sandboxFor, started, type Place } from '../support/recipes/recipe.ts'

const HEADING = /^Logged in as \S+$/

/** Sends the form of the provider, and sees what the server and the client have rendered. @returns the heading */
async function arrive(page: Page, { origin }: Place, email?: string): Promise<string> {
  await sendForm(page, email)
  await page.waitForURL(`${origin}/account`)
  const heading = page.locator('h1', { hasText: HEADING })
  await heading.waitFor()
  await page.locator('p', { hasText: /^DOT\d+/ }).waitFor()
  await page.locator('output', { hasText: /^[\d.]+$/ }).waitFor()
  return heading.innerText()
}

/** What the server renders for a request of this browser, before any script runs. */
async function rendered(window: BrowserContext, { origin }: Place) {
  const response = await window.request.get(`${origin}/account`, { maxRedirects: 0 })
  const { location, 'cache-control': cacheControl } = response.headers()
  const [, heading] = /<h1>(.*?)<\/h1>/.exec(await response.text()) ?? []
  return { status: response.status(), heading, location, cacheControl }
}

/** Why the socket of an account ends, which the page opens without a session. */
const endOfSocket = (page: Page): Promise<unknown> =>
  page.evaluate(`new Promise((resolve) => {
    new WebSocket('/ws/trading/DOT1').onclose = ({ code, reason }) => resolve(code + ' ' + reason)
  })`)

/** A user logs in, and logs out in another tab. */
async function useInTwoTabs(t: Test, place: Place): Promise<void> {
  const window = await testChromium(t)
  const page = await window.newPage()
  const failures: string[] = []
  page.on('pageerror', (error) => failures.push(error.message))
  await page.goto(`${place.origin}/account`)
  await page.click('text=Log in')
  await arrive(page, place)
  const [other, left] = [await window.newPage(), await window.newPage()]
  for (const tab of [other, left]) {
    await tab.goto(`${place.origin}/account`)
    await tab.locator('h1', { hasText: HEADING }).waitFor()
  }
  await left.goto(`${place.origin}/`)
  await left.locator('a', { hasText: 'Account' }).waitFor()
  await other.click('text=Log out')
  for (const tab of [other, page, left]) {
    await tab.waitForURL(`${place.origin}/`)
    await tab.locator('a', { hasText: 'Log in' }).waitFor()
  }
  await left.goBack()
  await left.waitForURL(`${place.origin}/`)
  await left.locator('a', { hasText: 'Log in' }).waitFor()
  t.match(await endOfSocket(page), /^4401 login_required/, 'the code of a socket comes through')
  t.same(failures, [])
}

await test('docs/examples/next: a user logs in and out, under development', async (t) => {
  const [recipe, place] = [await installed(t, 'next'), await sandboxFor(t)]
  await edit(recipe, 'package.json', { 5173: place.port, 'localhost:3000': place.server })
  await started(t, recipe, 'dev', place)
  await useInTwoTabs(t, place)
})

await test('docs/examples/next: a build renders the session of the user who asks, and of nobody else', async (t) => {
  const [recipe, place] = [await installed(t, 'next'), await sandboxFor(t)]
  await edit(recipe, 'package.json', { 5173: place.port })
  await writeFile(join(recipe.dir, 'tsconfig.json'), JSON.stringify({ compilerOptions: { strict: true } }))
  await writeFile(join(recipe.dir, '.env.production'), `BFF_URL=http://${place.server}`)
  await recipe.run('next', 'build')
  await started(t, recipe, 'start', place)
  await useInTwoTabs(t, place)

  const windows = [await testChromium(t), await testChromium(t)] as const
  const headings: string[] = []
  for (const [index, window] of windows.entries()) {
    const page = await window.newPage()
    await page.goto(`${place.origin}/auth/signup?return_to=/account`)
    headings.push(await arrive(page, place, `user${index}@example.test`))
  }
  t.equal(new Set(headings).size, 2)
  const visitor = await testChromium(t)
  const requests = Array.from({ length: 10 }, () => [...windows, visitor].map((window) => rendered(window, place)))
  const answers = await Promise.all(requests.flat())
  for (const [index, answer] of answers.entries()) {
    const heading = headings[index % 3]
    t.match(answer.cacheControl, /\bprivate\b.*\bno-store\b/)
    t.match(answer, heading ? { status: 200, heading } : { status: 307, location: '/' })
  }
  const elsewhere = await fetch(`${place.origin}/account`, {
    headers: { 'sec-fetch-site': 'cross-site' },
    redirect: 'manual',
  })
  t.equal(elsewhere.status, 200, 'a visitor from another site is not sent away')
  t.match(await elsewhere.text(), 'Checking your login')

  const port = String(await freePort())
  await edit(recipe, 'package.json', { [place.port]: port })
  await started(t, recipe, 'start', { port, env: { BFF_URL: 'http://127.0.0.1:9' } })
  const moved = { ...place, origin: `http://localhost:${port}` }
  const unanswered = { status: 200, heading: 'Checking your login' }
  t.match(await rendered(windows[0], moved), unanswered, 'a user is not sent away while the server does not answer')
  const health = await windows[0].request.get(`${moved.origin}/api/v1/health`, { headers: { 'x-csrf': '1' } })
  t.equal(health.status(), 200, 'rewrites keep the address that they had when the page was built')
})
