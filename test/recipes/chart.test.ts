import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { testChromium } from '../support/browser/chromium.ts'
import { compiles } from '../support/recipes/built.ts'
import { installed } from '../support/recipes/recipe.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

/** Whether the chart has the colour of its line, #2196f3, anywhere. */
const IS_DRAWN = `[...document.querySelectorAll('#chart canvas')].some((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
  for (let at = 0; at < data.length; at += 4) if (data[at] === 0x21 && data[at + 1] === 0x96 && data[at + 2] === 0xf3) return true
  return false
})`

await test('docs/examples/chart: the chart is drawn under the default Content-Security-Policy, which refuses the logo of the library', async (t) => {
  const recipe = await installed(t, 'chart')
  await compiles(recipe)
  await recipe.run('vite', 'build')
  const { server } = await startWorld(t, {
    market: { tickMs: 200 },
    settings: { STATIC_DIR: join(recipe.dir, 'dist') },
  })
  const { page, refused } = await shown(t, server.url)
  const [link] = await page.locator('footer a').all()
  t.ok(await link?.isVisible())
  t.equal(await link?.getAttribute('href'), 'https://www.tradingview.com/')
  t.same(await refused(), [])

  const script = join(recipe.dir, 'src/chart.ts')
  const source = await readFile(script, 'utf8')
  await writeFile(script, source.replace('attributionLogo: false', 'attributionLogo: true'))
  await recipe.run('vite', 'build')
  const { refused: withLogo } = await shown(t, server.url)
  t.match(await withLogo(), [/^style-src/])
})

/** Opens the page, and waits until it shows a line. */
async function shown(t: Test, url: string): Promise<{ page: Page; refused: () => Promise<unknown> }> {
  const page = await (await testChromium(t)).newPage()
  await page.addInitScript(`globalThis.refused = []
    addEventListener('securitypolicyviolation', ({ effectiveDirective }) => refused.push(effectiveDirective))
    addEventListener('error', ({ message }) => refused.push(message))`)
  await page.goto(url)
  await until(() => page.evaluate<boolean>(IS_DRAWN))
  return { page, refused: () => page.evaluate('refused') }
}
