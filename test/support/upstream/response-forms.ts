import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'

const JSON_TYPE = 'Content-Type: application/json\r\n'

/** The bytes of a whole response with this body. With `Connection: close`, or a `\0` at the end, it ends with its connection. */
export type Form = (body: string) => string

const head =
  (lines: string, status = 'HTTP/1.1 200 OK'): Form =>
  (body) =>
    `${status}\r\n${JSON_TYPE}${lines}\r\n\r\n${body}`
const sized =
  (line: (length: number) => string, status?: string): Form =>
  (body) =>
    head(line(body.length), status)(body)
const after =
  (...interim: string[]): Form =>
  (body) =>
    [...interim.map((each) => `HTTP/1.1 ${each}\r\n\r\n`), sized((length) => `Content-Length: ${length}`)(body)].join(
      '',
    )
const chunked =
  (sizeEnd: string, end: string, line = 'Transfer-Encoding: chunked'): Form =>
  (body) => {
    const [first, second] = [body.slice(0, 9), body.slice(9)]
    const chunks = [first, second].map((text) => `${text.length.toString(16)}${sizeEnd}\r\n${text}\r\n`)
    return head(line)(`${chunks.join('')}${end}\r\n`)
  }

/** What any server may send (RFC 9110, RFC 9112), by what is unusual about it. */
export const FORMS: Record<string, Form> = {
  nothing: sized((length) => `Content-Length: ${length}`),
  'names in lower case': sized((length) => `content-length: ${length}`),
  'no space before a length': sized((length) => `Content-Length:${length}`),
  'white space before a length': sized((length) => `Content-Length: \t  ${length}`),
  'a space after a length': sized((length) => `Content-Length: ${length} `),
  'white space after a length': sized((length) => `Content-Length: ${length} \t \t`),
  'white space after a length that is not the last header': sized((length) => `Content-Length: ${length} \r\nX-A: b`),
  'a length with zeros before it': sized((length) => `Content-Length: 00${length}`),
  'an empty header': sized((length) => `X-Empty:\r\nContent-Length: ${length}`),
  'no reason': sized((length) => `Content-Length: ${length}`, 'HTTP/1.1 200 '),
  'no reason, and no space': sized((length) => `Content-Length: ${length}`, 'HTTP/1.1 200'),
  'a reason in UTF-8': sized((length) => `Content-Length: ${length}`, 'HTTP/1.1 200 Tr\u00c3\u00a8s bien'),
  'an empty line before the status': sized((length) => `Content-Length: ${length}`, '\r\nHTTP/1.1 200 OK'),
  'an empty line after the body': (body) => `${sized((length) => `Content-Length: ${length}`)(body)}\r\n`,
  'a hundred headers': sized((length) => `${'X-A: b\r\n'.repeat(100)}Content-Length: ${length}`),
  'a header of 9 KB': sized((length) => `X-A: ${'a'.repeat(9000)}\r\nContent-Length: ${length}`),
  'no length, until the connection ends': head('Connection: close'),
  'no length and no Connection': (body) => `${head('X-A: b')(body)}\0`,
  'HTTP/1.0': (body) => `${head('X-A: b', 'HTTP/1.0 200 OK')(body)}\0`,
  'HTTP/1.0 with a length': (body) => `${sized((length) => `Content-Length: ${length}`, 'HTTP/1.0 200 OK')(body)}\0`,
  'HTTP/1.0 that is kept alive': sized(
    (length) => `Connection: keep-alive\r\nContent-Length: ${length}`,
    'HTTP/1.0 200 OK',
  ),
  chunks: chunked('', '0\r\n'),
  'chunks in capitals, with spaces after them': chunked('', '0\r\n', 'TRANSFER-ENCODING: Chunked  '),
  'chunks with zeros before their sizes': chunked('', '000\r\n'),
  'chunks with extensions': chunked(';a=b;c="d;e"', '0;f\r\n'),
  'chunks with trailers': chunked(
    '',
    '0\r\nX-Trailer: 1\r\nX-Other: 2\r\n',
    'Transfer-Encoding: chunked\r\nTrailer: X-Trailer',
  ),
  'a 100': after('100 Continue'),
  'a 100 without a reason': after('100 '),
  'a 100 with headers': after('100 Continue\r\nX-A: b\r\nDate: Sat, 28 Nov 2026 00:00:00 GMT'),
  'a 102': after('102 Processing'),
  'a 103': after('103 Early Hints\r\nLink: </a.css>; rel=preload'),
  'a 1xx that nobody knows': after('199 Whatever'),
  'several of them': after('100 Continue', '103 Early Hints\r\nLink: </a>', '100 Continue', '102 Processing', '102 P'),
  'a 100 before white space after a length': (body) =>
    `HTTP/1.1 100 Continue\r\n\r\n${sized((length) => `Content-Length: ${length} `)(body)}`,
  'a 100 before chunks': (body) => `HTTP/1.1 100 Continue\r\n\r\n${chunked('', '0\r\n')(body)}`,
}

/** Valid as well, or taken by many, but neither undici's parser nor Node's takes them. */
export const REFUSED: Record<string, Form> = {
  'a length that is there twice': sized((length) => `Content-Length: ${length}\r\nContent-Length: ${length}`),
  'a length as a list': sized((length) => `Content-Length: ${length}, ${length}`),
  'white space before an extension of a chunk': chunked(' ; a=b', '0\r\n'),
  'a 103 that says Connection: close': after('103 Early Hints\r\nConnection: close'),
  'a header that goes on in the next line': sized((length) => `X-A: b\r\n c\r\nContent-Length: ${length}`),
  'lines that end without CR': (body) => sized((length) => `Content-Length: ${length}`)(body).replaceAll('\r', ''),
  'an unasked 101': after('101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c'),
}

/** Sends a response at once, or its heads byte by byte. */
export async function sendForm(socket: Socket, text: string, inBytes = false): Promise<void> {
  const endsIt = text.endsWith('\0') || text.includes('Connection: close')
  const bytes = Buffer.from(text.replace(/\0$/, ''), 'latin1')
  socket.setNoDelay()
  let sent = 0
  for (const end = inBytes ? bytes.lastIndexOf('\r\n\r\n') : 0; sent < end; sent++) {
    socket.write(bytes.subarray(sent, sent + 1))
    await turn()
  }
  socket.write(bytes.subarray(sent))
  if (endsIt) socket.end()
}
