/**
 * The bytes of a GET request for each session. Their headers always have the same order, as those of one browser have: V8
 * compiles code for the orders that it has seen, and a load generator with a new order in each run would measure compilation.
 * @param headers as `Name: value`
 * @param cookies a Cookie header for each session
 */
export function requestTexts(url: string, headers: readonly string[], cookies: readonly string[]): string[] {
  const { host, pathname } = new URL(url)
  return cookies.map((cookie) =>
    [`GET ${pathname} HTTP/1.1`, `Host: ${host}`, `Cookie: ${cookie}`, ...headers, '', ''].join('\r\n'),
  )
}
