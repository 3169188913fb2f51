/** A path that is served when the request is well formed. */
export const ACCOUNTS = '/api/trading/v1/options/accounts'

/** Request targets that the server must not serve, or that parsers read differently. */
export const TARGETS: Readonly<Record<string, string>> = {
  'absolute form': `http://evil.example${ACCOUNTS}`,
  'absolute form in capitals': `HTTP://bff.example${ACCOUNTS}`,
  'two slashes': `/${ACCOUNTS}`,
  'two slashes inside': '/api//v1/health',
  'a host in the path': `//evil.example${ACCOUNTS}`,
  'no slash': 'api/v1/health',
  asterisk: '*',
  'a fragment': `${ACCOUNTS}#x`,
  'a fragment after the query': `${ACCOUNTS}?a=1#x`,
  'a parameter': '/api/v1/health;x=1',
  'a parameter in an id': '/api/payment-agents/v1/agents/a;b',
  'a NUL': '/api/payment-agents/v1/agents/a%00',
  'dot segments': '/api/v1/../v1/health',
  'dot segments, encoded': '/api/payment-agents/v1/agents/%2e%2e',
  'dot segments, half encoded': '/api/payment-agents/v1/agents/.%2E',
  'dot segments, encoded twice': '/api/payment-agents/v1/agents/%252e%252e',
  'an id of two dots': '/api/payment-agents/v1/agents/..',
  'an encoded slash': '/api/payment-agents/v1/agents/a%2Fb',
  'an encoded letter': '/api/v1/%68ealth',
  'an encoded prefix': '/%61pi/v1/health',
  'an encoded id': '/api/payment-agents/v1/agents/%41',
  'a backslash': '/api\\v1\\health',
  'a backslash in an id': '/api/payment-agents/v1/agents/a\\b',
  'an encoded backslash': '/api/payment-agents/v1/agents/%5c',
  'overlong UTF-8': '/api/payment-agents/v1/agents/%c0%ae%c0%ae',
  'overlong slash': '/api/payment-agents/v1/agents/a%c0%afb',
  'a lone percent sign': '/api/payment-agents/v1/agents/%',
  'a bad escape': '/api/payment-agents/v1/agents/%zz',
  'a raw high byte': '/api/payment-agents/v1/agents/\xe9',
  'a high byte in the query': `${ACCOUNTS}?a=\xe9`,
  'an empty id': '/api/payment-agents/v1/agents/',
  'an empty id inside': '/api/trading/v1/options/accounts//reset-demo-balance',
  'an id of 65 characters': `/api/payment-agents/v1/agents/${'a'.repeat(65)}`,
  'an id of 200 characters': `/api/payment-agents/v1/agents/${'a'.repeat(200)}`,
  'a trailing slash': `${ACCOUNTS}/`,
  capitals: ACCOUNTS.toUpperCase(),
  'a query of 4097 bytes': `${ACCOUNTS}?${'a'.repeat(4097)}`,
  'the OTP endpoint': `${ACCOUNTS}/abc/otp`,
}

/** Missing, invalid or repeated Host headers. */
export const HOSTS: Readonly<Record<string, string>> = {
  'two Host headers': 'Host: bff.example\r\nHost: bff.example\r\n',
  'two Host headers in other letters': 'Host: bff.example\r\nhost: evil.example\r\n',
  'Host with userinfo': 'Host: a@b\r\n',
  'Host with a path': 'Host: a/b\r\n',
  'Host with a comma': 'Host: a, b\r\n',
  'an empty Host': 'Host:\r\n',
  'no Host': '',
}

/**
 * Requests whose end parsers see at different places: one that sees it too early mistakes `smuggled` for the next request.
 * @param post a POST to {@link ACCOUNTS} with these header lines and this body
 */
export function framing(post: (lines: string, body: string) => string, smuggled: string): Record<string, string> {
  return {
    'length and chunks': post(`Content-Length: 4\r\nTransfer-Encoding: chunked\r\n`, `0\r\n\r\n${smuggled}`),
    'chunks and length': post(`Transfer-Encoding: chunked\r\nContent-Length: 4\r\n`, `0\r\n\r\n${smuggled}`),
    'two lengths': post(`Content-Length: 0\r\nContent-Length: ${smuggled.length}\r\n`, smuggled),
    'the same length twice': post('Content-Length: 0\r\nContent-Length: 0\r\n', smuggled),
    'a list of lengths': post('Content-Length: 0, 0\r\n', smuggled),
    'a signed length': post('Content-Length: +0\r\n', smuggled),
    'a negative length': post('Content-Length: -1\r\n', smuggled),
    'a hexadecimal length': post('Content-Length: 0x0\r\n', smuggled),
    'another coding': post('Transfer-Encoding: identity\r\n', smuggled),
    'a coding before chunked': post('Transfer-Encoding: gzip, chunked\r\n', `0\r\n\r\n${smuggled}`),
    'chunked twice': post('Transfer-Encoding: chunked, chunked\r\n', `0\r\n\r\n${smuggled}`),
    'chunked in two lines': post(
      'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n',
      `0\r\n\r\n${smuggled}`,
    ),
    'a misspelled coding': post('Transfer-Encoding: xchunked\r\n', `0\r\n\r\n${smuggled}`),
    'a space before the colon': post('Transfer-Encoding : chunked\r\n', `0\r\n\r\n${smuggled}`),
    'obs-fold': post(`X-A: b\r\n Content-Length: ${smuggled.length}\r\n`, smuggled),
    'a folded coding': post('Transfer-Encoding:\r\n chunked\r\n', `0\r\n\r\n${smuggled}`),
    'a bare CR in a header': post(`X-A: b\rContent-Length: ${smuggled.length}\r\n`, smuggled),
    'a bare LF in the head': post(`X-A: b\nContent-Length: ${smuggled.length}\r\n`, smuggled),
    'a NUL in a header': post('X-A: b\0c\r\n', smuggled),
    'a bad chunk size': post('Transfer-Encoding: chunked\r\n', `zz\r\n\r\n${smuggled}`),
    'a signed chunk size': post('Transfer-Encoding: chunked\r\n', `-1\r\n\r\n${smuggled}`),
    'an endless chunk size': post('Transfer-Encoding: chunked\r\n', `${'f'.repeat(17)}\r\n${smuggled}`),
    'a chunk longer than its size': post('Transfer-Encoding: chunked\r\n', `1\r\nabc\r\n0\r\n\r\n${smuggled}`),
    'a bare LF behind a chunk size': post('Transfer-Encoding: chunked\r\n', `1\na\n0\n\n${smuggled}`),
    'no HTTP': 'hello\r\n\r\n',
    'TLS on the plain port': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    'a head of 20 KB': `GET ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`,
  }
}
