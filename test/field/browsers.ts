import type { Kind, Row } from './row.ts'

const BOTH = [
  'test/journeys/{demo-trade,login-journeys,orders-sent-once,sibling-host}.test.ts',
  'test/client/{redirect,tabs}-browsers.test.ts',
  'test/frontends/{back-after-logout,popup-login}.test.ts',
]
const CHROMIUM: Pick<Row, 'product' | 'suites'> = {
  product: 'Chromium',
  suites: { Journeys: ['test/journeys/chromium.test.ts', ...BOTH] },
}
const FIREFOX: Pick<Row, 'product' | 'suites'> = { product: 'Firefox', suites: { Journeys: BOTH } }
const WEBKIT: Pick<Row, 'product' | 'suites'> = {
  product: 'WebKitGTK',
  suites: { Journeys: ['test/journeys/webkit.test.ts'] },
}
/** Not the script of the package, which wants more programs than it brings. */
const CHROMIUM_PROGRAMS = { chromium: '/usr/lib/chromium/chromium' }
const AS_CHROMIUM = { BROWSER: 'chrome', CHROMIUM: 'PROGRAMS/chromium' }
const AS_FIREFOX = { BROWSER: 'firefox', FIREFOX: 'PROGRAMS/firefox' }

const WEBKIT_NOTE =
  'It refuses `Secure` cookies at `http://localhost`, so it is tried over TLS. Without a default route it says that it is offline (`navigator.onLine`), and the package opens no socket.'

export const BROWSERS: Kind = {
  title: 'Browsers',
  text: `*Journeys:* logins in several tabs, sign-ups, back and forward, trades, orders whose replies are lost, session sockets of many
tabs, a logout and the button Back, popups, a hostile sibling host. They run headless, by Chrome DevTools Protocol and WebDriver BiDi.
WebKit has journeys of its own, by WebDriver: a login, prices and calls, a logout of which another tab learns, back and forward, and
the button Back after a logout.
\`npm run test:browsers\` runs all.`,
  columns: ['Journeys'],
  rows: [
    { id: 'chromium', ...CHROMIUM, from: { installed: 'chromium' }, environment: { BROWSER: 'chrome' } },
    {
      id: 'chromium-old',
      ...CHROMIUM,
      from: { debian: 'bookworm', packages: ['chromium'], programs: CHROMIUM_PROGRAMS },
      environment: AS_CHROMIUM,
    },
    { id: 'firefox-esr', ...FIREFOX, from: { installed: 'firefox-esr' }, environment: { BROWSER: 'firefox' } },
    {
      id: 'firefox-esr-old',
      ...FIREFOX,
      from: {
        debian: 'bookworm',
        packages: ['firefox-esr'],
        programs: { firefox: '/usr/lib/firefox-esr/firefox-esr' },
      },
      environment: AS_FIREFOX,
      note: 'The library of the tests waits in a page by a script that the policy of the page forbids in this version, so five tests cannot run.',
    },
    {
      id: 'firefox',
      ...FIREFOX,
      from: { debian: 'sid', packages: ['firefox'], programs: { firefox: '/usr/lib/firefox/firefox' } },
      environment: AS_FIREFOX,
    },
    {
      id: 'webkitgtk',
      ...WEBKIT,
      from: { installed: 'webkit2gtk-driver' },
      environment: { ROUTE: '192.0.2.2' },
      note: WEBKIT_NOTE,
    },
    {
      id: 'webkitgtk-new',
      ...WEBKIT,
      from: {
        debian: 'sid',
        packages: ['webkitgtk-webdriver'],
        programs: { WebKitWebDriver: '/usr/bin/WebKitWebDriver' },
      },
      environment: { ROUTE: '192.0.2.2' },
      note: WEBKIT_NOTE,
    },
  ],
}
