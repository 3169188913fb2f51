import { BROWSER_MAP, OS_MAP } from 'bowser'
import { assert, property, string } from 'fast-check'
import { test } from 'tap'
import { deviceOf } from '../../src/sessions/device.ts'

const WEBKIT = 'AppleWebKit/537.36 (KHTML, like Gecko)'
const KNOWN = [
  [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/131.0.0.0 Safari/537.36`, 'Chrome on Windows'],
  [`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${WEBKIT} Version/17.5 Safari/605.1.15`, 'Safari on macOS'],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
    'Safari on iOS',
  ],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0', 'Firefox on Linux'],
  [
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0`,
    'Microsoft Edge on Windows',
  ],
  ['Something (X11; Linux x86_64)', 'Linux'],
] as const

await test('the device of a session is the browser and the system that its User-Agent names', async (t) => {
  for (const [userAgent, device] of KNOWN) t.equal(deviceOf(userAgent), device)
})

await test('a device is never a text that a client has made up, and no User-Agent is read beyond 512 characters', async (t) => {
  for (const userAgent of [undefined, '', ' ', 'curl/8.1', 'Ann <b>on</b> my/1 (Mac)', '\u202Eevil/1.0 (x']) {
    t.equal(deviceOf(userAgent), undefined, userAgent ?? 'none')
  }
  t.equal(deviceOf('('.repeat(506) + 'Linux '), 'Linux')
  t.equal(deviceOf('('.repeat(512) + 'Linux '), undefined)
  const names = new Set<string | undefined>([...Object.values(BROWSER_MAP), ...Object.values(OS_MAP)])
  assert(
    property(string({ maxLength: 600 }), (userAgent) => {
      const device = deviceOf(userAgent)
      return device === undefined || device.split(' on ').every((name) => names.has(name))
    }),
  )
})

const longest = (names: Readonly<Record<string, string>>): number =>
  Math.max(...Object.values(names).map((name) => name.length))

await test('a device has at most 64 characters, whatever the library knows', async (t) => {
  t.ok(longest(BROWSER_MAP) + ' on '.length + longest(OS_MAP) <= 64)
})
