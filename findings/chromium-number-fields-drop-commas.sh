#!/bin/sh
# Chromium 156, in English: a guess says that `<input type="number">` in which a user types 1,5 is either 1.5 or not a number, so that
# its value is "" and `validity.badInput` is true, as in Firefox 153. Yet Chromium leaves the comma out, also of a text that is
# inserted as a whole: the field shows 15, its value is "15", and it is valid. A user who writes decimals with a comma orders ten times
# the amount, or a hundred times with two decimals, and the page cannot see it. The language of the page does not change that, while
# `lang="de"` makes it 1.5 in Firefox. Tests that set `value`, or type a point, pass. A text field with `inputmode="decimal"` leaves it
# to the page what a comma means.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund puppeteer-core@25.16.0
cat >type.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { launch } from 'puppeteer-core'

const BROWSERS = [
  { browser: 'chrome', executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--lang=en-US'], env: { ...process.env, LANGUAGE: 'en_US' } },
  { browser: 'firefox', executablePath: '/usr/bin/firefox-esr', extraPrefsFirefox: { 'intl.locale.requested': 'en-US' } },
]
const pages = createServer((request, response) => {
  const html = `<!doctype html><html lang="${request.url.slice(1)}"><title>page</title><input type="number" step="any">`
  response.setHeader('content-type', 'text/html').end(html)
})
await once(pages.listen(0, '127.0.0.1'), 'listening')
const read = (page) => page.$eval('input', ({ value, validity }) => (validity.badInput ? 'bad input' : value))
for (const options of BROWSERS) {
  const browser = await launch({ headless: true, ...options })
  const page = await browser.newPage()
  for (const language of ['en', 'de']) {
    const seen = []
    for (const typed of ['1.5', '1,5', '0,25']) {
      await page.goto(`http://127.0.0.1:${pages.address().port}/${language}`)
      await page.focus('input')
      await page.keyboard.type(typed)
      seen.push(`${typed} is ${await read(page)}`)
    }
    await page.goto(`http://127.0.0.1:${pages.address().port}/${language}`)
    await page.focus('input')
    await page.evaluate(`document.execCommand('insertText', false, '1,5')`)
    seen.push(`1,5 at once is ${await read(page)}`)
    console.log(`${options.browser}, lang="${language}": ${seen.join(', ')}`)
  }
  await browser.close()
}
pages.close()
JS
seen=$(node type.mjs)
echo "$seen"
[ "$seen" = 'chrome, lang="en": 1.5 is 1.5, 1,5 is 15, 0,25 is 025, 1,5 at once is 15
chrome, lang="de": 1.5 is 1.5, 1,5 is 15, 0,25 is 025, 1,5 at once is 15
firefox, lang="en": 1.5 is 1.5, 1,5 is bad input, 0,25 is bad input, 1,5 at once is bad input
firefox, lang="de": 1.5 is 1.5, 1,5 is 1.5, 0,25 is 0.25, 1,5 at once is 1.5' ]
