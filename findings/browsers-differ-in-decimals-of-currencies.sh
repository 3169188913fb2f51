#!/bin/sh
# Chromium 156 and Firefox 153: a guess says that `Intl.NumberFormat` with `style: 'currency'` and no digits of its own writes an
# amount with the decimals of ISO 4217 in both, as ECMA-402 asked for until 2024, so that a page may leave the digits to it. Yet
# Chromium goes by what is in use in the country (CLDR), and rounds: 1234.56 Hungarian forints are HUF 1,235 in Chromium and HUF
# 1,234.56 in Firefox, and so are Colombian pesos, Indonesian and Pakistani rupees, Serbian dinars and a dozen others. A balance is not
# the same in two browsers, and a customer who pays what is shown pays too much or too little. `resolvedOptions()`, from which some
# read the decimals of a currency to turn its smallest units into an amount, is wrong by a factor of a hundred. A page has to set the
# digits by itself.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund puppeteer-core@25.16.0
cat >see.mjs <<'JS'
import { launch } from 'puppeteer-core'

const BROWSERS = [
  { browser: 'chrome', executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] },
  { browser: 'firefox', executablePath: '/usr/bin/firefox-esr' },
]
const seen = []
for (const options of BROWSERS) {
  const browser = await launch({ headless: true, ...options })
  const page = await browser.newPage()
  seen.push(
    await page.evaluate(() => {
      const format = (currency) => new Intl.NumberFormat('en', { style: 'currency', currency })
      const digits = Intl.supportedValuesOf('currency').map((each) => [each, format(each).resolvedOptions().maximumFractionDigits])
      const amounts = ['EUR', 'JPY', 'HUF', 'COP', 'IDR', 'PKR', 'RSD'].map((each) => format(each).format(1234.56).replace(/\s/g, ' '))
      return { digits, amounts }
    }),
  )
  await browser.close()
}
const [chromium, firefox] = seen
const ofFirefox = new Map(firefox.digits)
const differ = chromium.digits.filter(([currency, digits]) => ofFirefox.has(currency) && ofFirefox.get(currency) !== digits)
console.log(`chromium: ${chromium.amounts.join(', ')}`)
console.log(`firefox: ${firefox.amounts.join(', ')}`)
console.log(`currencies that differ: ${differ.map(([currency, digits]) => `${currency} ${digits} and ${ofFirefox.get(currency)}`).join(', ')}`)
JS
seen=$(node see.mjs)
echo "$seen"
[ "$(echo "$seen" | head -n 2)" = 'chromium: €1,234.56, ¥1,235, HUF 1,235, COP 1,235, IDR 1,235, PKR 1,235, RSD 1,235
firefox: €1,234.56, ¥1,235, HUF 1,234.56, COP 1,234.56, IDR 1,234.56, PKR 1,234.56, RSD 1,234.56' ]
