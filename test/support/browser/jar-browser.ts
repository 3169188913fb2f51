import { keepCookiesOutOfLogs } from '../telemetry/log-scan.ts'

/** A cookie as a browser keeps it. */
export interface JarCookie {
  readonly name: string
  readonly value: string
  readonly host: string
  readonly path: string
  readonly secure: boolean
  readonly httpOnly: boolean
  readonly sameSite: 'strict' | 'lax' | 'none'
  readonly maxAgeSeconds: number | undefined
  readonly expiresAt: number
}

/** The request of a script. */
export type PageRequest = Omit<RequestInit, 'headers'> & {
  readonly headers?: Readonly<Record<string, string>>
}

/** Where a navigation ended, and every response on the way. */
export interface Arrival {
  readonly url: URL
  readonly response: Response
  readonly body: string
  readonly hops: readonly { url: URL; status: number; headers: Headers }[]
}

const MAX_HOPS = 20

/**
 * A browser that is reduced to what a login needs: navigations over several sites, forms, and a cookie jar. The jar obeys
 * `__Host-` and Max-Age, and withholds Strict cookies when a page of another site started the navigation.
 */
export class JarBrowser {
  readonly cookies = new Map<string, JarCookie>()
  /** The page the browser shows; undefined: a new tab. */
  page: URL | undefined
  /** What the browser calls itself. */
  userAgent = 'jar-browser'
  readonly #unvisited: string | undefined

  /** @param unvisited an origin where nothing listens: a navigation that is led there ends with its address */
  constructor(unvisited?: string) {
    this.#unvisited = unvisited
  }

  /** Opens an address from the address bar, or from a link of the current page. @param options.signal the user stops it */
  async navigate(
    address: string,
    options: { from?: URL | 'address bar'; signal?: AbortSignal } = {},
  ): Promise<Arrival> {
    const from = options.from ?? this.page ?? 'address bar'
    const start = from === 'address bar' ? undefined : from
    return this.#go(new URL(address, this.page), start, undefined, [], options.signal)
  }

  /** Sends the form of the current page: its hidden fields, then the given ones. */
  async submit(arrival: Arrival, fields: Record<string, string>, signal?: AbortSignal): Promise<Arrival> {
    const form = new URLSearchParams()
    for (const [, name = '', value = ''] of arrival.body.matchAll(/<input type="hidden" name="(\w+)" value="(\w+)"/g)) {
      form.set(name, value)
    }
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    return this.#go(arrival.url, arrival.url, form, [], signal)
  }

  /** A fetch by a script of the current page, with the headers that a browser adds. */
  async fetch(path: string, init: PageRequest = {}): Promise<Response> {
    const page = this.page ?? new URL(path)
    const url = new URL(path, page)
    const isSafe = init.method === undefined || init.method === 'GET'
    const response = await fetch(url, {
      ...init,
      redirect: 'manual',
      headers: {
        'user-agent': this.userAgent,
        cookie: this.cookieHeader(url, page),
        'sec-fetch-site': url.origin === page.origin ? 'same-origin' : 'same-site',
        'sec-fetch-mode': 'cors',
        'sec-fetch-dest': 'empty',
        ...((!isSafe || url.origin !== page.origin) && { origin: page.origin }),
        ...init.headers,
      },
    })
    this.#keep(response, url)
    return response
  }

  /** The Cookie header for a request to `url` that a page at `from` started (undefined: the user did). */
  cookieHeader(url: URL, from: URL | undefined, isNavigation = false): string {
    const crossSite = from !== undefined && from.hostname !== url.hostname
    return [...this.cookies.values()]
      .filter(({ host, path, expiresAt }) => {
        const isBelow = path === '/' || url.pathname === path || url.pathname.startsWith(`${path}/`)
        return host === url.hostname && isBelow && expiresAt > Date.now()
      })
      .filter(({ sameSite }) => !crossSite || sameSite === 'none' || (sameSite === 'lax' && isNavigation))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ')
  }

  /** The cookies this server set, by name. */
  named(prefix: string): JarCookie[] {
    return [...this.cookies.values()].filter(({ name, expiresAt }) => name.startsWith(prefix) && expiresAt > Date.now())
  }

  /** Another browser with the same cookies, as a restored tab or a copy of the profile would be. */
  clone(): JarBrowser {
    const copy = new JarBrowser(this.#unvisited)
    for (const [key, cookie] of this.cookies) copy.cookies.set(key, cookie)
    copy.page = this.page
    return copy
  }

  async #go(
    url: URL,
    from: URL | undefined,
    form: URLSearchParams | undefined,
    hops: Arrival['hops'],
    signal: AbortSignal | undefined,
  ): Promise<Arrival> {
    if (hops.length > MAX_HOPS) throw new Error('too many redirects')
    const site = from === undefined ? 'none' : from.hostname === url.hostname ? 'same-site' : 'cross-site'
    const response = await fetch(url, {
      ...(form && { method: 'POST', body: form }),
      ...(signal && { signal }),
      redirect: 'manual',
      headers: {
        accept: 'text/html',
        'user-agent': this.userAgent,
        cookie: this.cookieHeader(url, from, form === undefined),
        'sec-fetch-site': site,
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
        ...(form && { origin: url.origin }),
      },
    })
    this.#keep(response, url)
    const body = await response.text()
    const seen = [...hops, { url, status: response.status, headers: response.headers }]
    const location = response.headers.get('location')
    if (location !== null) {
      const next = new URL(location, url)
      if (next.origin === this.#unvisited) return { url: next, response, body, hops: seen }
      return this.#go(next, from, undefined, seen, signal)
    }
    this.page = url
    return { url, response, body, hops: seen }
  }

  #keep(response: Response, url: URL): void {
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim())
      const at = pair.indexOf('=')
      const name = pair.slice(0, at)
      const has = new Map(attributes.map((each) => [each.split('=')[0]?.toLowerCase(), each.split('=')[1]]))
      const isPrefixed = name.startsWith('__Host-')
      // A browser drops such a cookie silently, so this is an error here.
      if (isPrefixed && (!has.has('secure') || has.get('path') !== '/' || has.has('domain'))) {
        throw new Error(`a browser refuses this cookie: ${line}`)
      }
      const age = has.has('max-age') ? Number(has.get('max-age')) : undefined
      const expires = has.get('expires')
      const expiresAt =
        age !== undefined ? Date.now() + age * 1000 : expires === undefined ? Infinity : Date.parse(expires)
      const path = has.get('path') ?? '/'
      keepCookiesOutOfLogs(pair)
      const key = `${url.hostname};${path};${name}`
      if (expiresAt <= Date.now()) this.cookies.delete(key)
      else {
        this.cookies.set(key, {
          name,
          value: pair.slice(at + 1),
          host: url.hostname,
          path,
          secure: has.has('secure'),
          httpOnly: has.has('httponly'),
          sameSite: (has.get('samesite')?.toLowerCase() ?? 'lax') as JarCookie['sameSite'],
          maxAgeSeconds: age,
          expiresAt,
        })
      }
    }
  }
}
