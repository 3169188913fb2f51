import { request } from 'undici'

/** Where a login starts. */
interface LoginStart {
  readonly url: string
  /** The origin in PUBLIC_URL. Redirects to it are sent to the origin of `url`, as the bench has no TLS proxy in front. */
  readonly publicOrigin?: string
}

const MAX_HOPS = 20

/** Logs in several times. @returns the Cookie headers of the sessions */
export async function logInMany(start: LoginStart, count: number): Promise<string[]> {
  const cookies: string[] = []
  while (cookies.length < count) cookies.push(await logIn(start))
  return cookies
}

/**
 * Logs the demo user in through the pages of the provider, as a browser would.
 * @returns the Cookie header for the origin of `start.url`
 */
async function logIn(start: LoginStart): Promise<string> {
  const { origin } = new URL(start.url)
  const jars = new Map<string, Map<string, string>>()
  let url = new URL(start.url)
  let form: URLSearchParams | undefined
  for (let hop = 0; hop < MAX_HOPS; hop++) {
    // fetch() would set its own Sec-Fetch-Mode, and only navigations can log in.
    const response = await request(url, {
      ...(form && { method: 'POST', body: form.toString() }),
      headers: {
        accept: 'text/html',
        ...(start.publicOrigin !== undefined && url.origin === origin && { host: new URL(start.publicOrigin).host }),
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
        cookie: cookieHeader(jars.get(url.origin)),
        ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
      },
    })
    const { location, 'set-cookie': set = [] } = response.headers
    keep(jars, url.origin, [set].flat())
    const html = await response.body.text()
    form = undefined
    if (typeof location === 'string') {
      url = new URL(location, url)
      if (url.origin === start.publicOrigin) url = new URL(url.pathname + url.search, origin)
    } else if (url.origin !== origin && response.statusCode === 200) {
      form = filledIn(html)
    } else {
      const cookies = cookieHeader(jars.get(origin))
      if (cookies === '') throw new Error(`the login set no cookie and ended at ${url.href}: ${html.slice(0, 300)}`)
      return cookies
    }
  }
  throw new Error(`the login at ${start.url} did not end after ${MAX_HOPS} requests`)
}

function filledIn(html: string): URLSearchParams {
  const form = new URLSearchParams({ email: 'demo@example.test', password: 'any', action: 'continue' })
  for (const [, name = '', value = ''] of html.matchAll(/<input type="hidden" name="(\w+)" value="(\w+)"/g)) {
    form.set(name, value)
  }
  return form
}

function keep(jars: Map<string, Map<string, string>>, origin: string, lines: readonly string[]): void {
  const jar = jars.get(origin) ?? new Map<string, string>()
  jars.set(origin, jar)
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    const isExpired = value === '' || /;\s*max-age=0/i.test(line) || /;\s*expires=thu, 01 jan 1970/i.test(line)
    if (isExpired) jar.delete(name)
    else jar.set(name, value)
  }
}

function cookieHeader(jar: ReadonlyMap<string, string> | undefined): string {
  return [...(jar ?? [])].map(([name, value]) => `${name}=${value}`).join('; ')
}
