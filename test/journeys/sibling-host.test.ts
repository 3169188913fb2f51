import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { browsersOr, testWindow } from '../support/browser/browsers.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { httpServer } from '../support/server/http-server.ts'
import { startWorld } from '../support/world.ts'
import { scripted } from '../support/login/token-endpoint.ts'

/** Two hosts of one site. Browsers resolve names below localhost to this machine (RFC 6761 §6.3). */
const OURS = 'bff.site.localhost'
const SIBLING = 'blog.site.localhost'

/** Characters that browsers allow before the name of a cookie and send unchanged. */
const DISGUISES: Readonly<Record<string, string>> = {
  'no-break space': '\u00a0',
  'next line': '\u0085',
  nothing: '',
}

/** Serves a page on the sibling host that sets this cookie for the whole site. @returns the address of the page */
async function siblingPage(t: Test, cookie: () => string): Promise<string> {
  const url = await httpServer(t, (_request, response) => {
    response.setHeader('set-cookie', `${cookie()}; Domain=site.localhost; Path=/`)
    // With a string body Node.js would send the headers as UTF-8 too, and the first byte of the cookie would become two.
    response.setHeader('content-type', 'text/html').end(Buffer.from('<title>A blog</title>'))
  })
  return `http://${SIBLING}:${new URL(url).port}/`
}

for (const name of browsersOr('firefox')) {
  await test(`GET /auth/callback: in ${name}, a sibling host cannot log a user in to the session of an attacker`, async (t) => {
    const port = await freePort()
    const publicUrl = `http://${OURS}:${port}`
    const settings = { PUBLIC_URL: publicUrl, STATIC_DIR: DEMO_PAGE }
    const { provider, server } = await startWorld(t, { provider: scripted, port, settings })
    let line = ''
    const sibling = await siblingPage(t, () => line)
    const window = await testWindow(t, name)
    const page = await window.newPage()
    const callback = (state: string): string => `${publicUrl}/auth/callback?code=a-code&state=${state}`
    const sessionCookie = async (): Promise<string | undefined> =>
      (await window.cookies()).find((each) => each.name === '__Host-session')?.value

    await page.goto(`${publicUrl}/auth/login`)
    await page.goto(callback(new URL(page.url()).searchParams.get('state') ?? ''))
    const own = await sessionCookie()
    t.ok(own, 'the user is logged in')

    for (const [disguise, character] of Object.entries(DISGUISES)) {
      // The attacker starts a login and plants its cookie and its callback in the user's browser.
      const started = await fetch(`http://127.0.0.1:${server.port}/auth/login`, { redirect: 'manual' })
      const [pair = ''] = started.headers.getSetCookie()[0]?.split(';') ?? []
      line = `${character}${pair}`
      await page.goto(sibling)
      const state = new URL(started.headers.get('location') ?? '').searchParams.get('state') ?? ''
      const exchanges = provider.forms.length
      await page.goto(callback(state))
      t.equal(provider.forms.length, exchanges, `${disguise}: no code is exchanged`)
      t.equal(await sessionCookie(), own, `${disguise}: the session cookie stays`)
    }
    await page.goto(`${publicUrl}/auth/session`)
    t.match(await page.evaluate('document.body.innerText'), /"?authenticated"?:\s*true/, 'the session stays')
  })
}
