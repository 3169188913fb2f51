/** Where a browser ended up after following redirects. */
export interface Visit {
  url: URL
  status: number
  html: string
  /** The address on another origin that a redirect led to, which is not fetched. */
  left?: URL
}

interface Cookie {
  host: string
  path: string
  value: string
}

/**
 * A browser that is reduced to cookies, redirects and forms, which is all that the provider's pages need.
 */
export class TestBrowser {
  readonly #cookies = new Map<string, Cookie>()

  /** Follows redirects within the origin. */
  async visit(address: string | URL, form?: URLSearchParams): Promise<Visit> {
    const url = new URL(address)
    const response = await fetch(url, {
      ...(form && { method: 'POST', body: form }),
      redirect: 'manual',
      headers: { accept: 'text/html', cookie: this.#cookiesFor(url) },
    })
    for (const line of response.headers.getSetCookie()) this.#keep(line, url)
    const location = response.headers.get('location')
    const html = await response.text()
    if (location === null) return { url, status: response.status, html }
    const next = new URL(location, url)
    return next.origin === url.origin ? this.visit(next) : { url, status: response.status, html, left: next }
  }

  /**
   * Fills in the form of the provider's page and sends it. Its buttons are `action: 'continue'` (unless told
   * otherwise) and `action: 'cancel'`; what the page holds in hidden fields is sent along.
   */
  async submit(page: Visit, fields: Readonly<Record<string, string>> = {}): Promise<Visit> {
    const hidden = page.html.matchAll(/<input type="hidden" name="(\w+)" value="(\w+)"/g)
    const form = new URLSearchParams({ action: 'continue' })
    for (const [, name = '', value = ''] of hidden) form.set(name, value)
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    return this.visit(page.url, form)
  }

  #cookiesFor({ hostname, pathname }: URL): string {
    return [...this.#cookies]
      .filter(([, { host, path }]) => host === hostname && pathname.startsWith(path))
      .map(([key, { value }]) => `${key.split(';', 1)[0]}=${value}`)
      .join('; ')
  }

  #keep(line: string, { hostname: host }: URL): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    const path = /;\s*path=([^;]+)/i.exec(line)?.[1] ?? '/'
    const expires = /;\s*expires=([^;]+)/i.exec(line)?.[1]
    const key = `${name};${host};${path}`
    if (expires !== undefined && Date.parse(expires) <= Date.now()) this.#cookies.delete(key)
    else this.#cookies.set(key, { host, path, value })
  }
}
