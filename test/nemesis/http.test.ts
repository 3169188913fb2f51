import { test } from 'tap'
import { jsonResponse, requestIn, withJson } from './http.ts'

const seen = (text: string) => requestIn(Buffer.from(text, 'latin1'))

const edited = (response: string) => withJson(Buffer.from(response), () => ({ longer: 'than before' })).toString()

await test('A request is seen when it is whole, and what is no request is none', async (t) => {
  t.equal(seen('POST /path HTTP/1.1\r\nContent-Le'), 'incomplete')
  t.equal(seen('POST /path HTTP/1.1\r\nContent-Length: 3\r\n\r\nab'), 'incomplete')
  t.match(seen('POST /path HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc'), { method: 'POST', path: '/path', body: 'abc' })
  t.match(seen('GET /path?a=1 HTTP/1.1\r\n\r\n'), { path: '/path?a=1', body: '' })
  t.equal(seen('POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n'), 'incomplete')
  t.match(seen('POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n'), { method: 'POST' })
  t.equal(seen('\x81\x85GET / HTTP/1.1'), undefined, 'a message of a socket')
})

await test('The JSON of a whole 200 is replaced, and its length; nothing else is', async (t) => {
  t.equal(
    edited(jsonResponse(200, { a: 1 })).replace(/\r\n/g, '|'),
    jsonResponse(200, { longer: 'than before' }).replace(/\r\n/g, '|'),
  )
  for (const other of [jsonResponse(400, { a: 1 }), jsonResponse(200, { a: 1 }).slice(0, -1), 'no HTTP'])
    t.equal(edited(other), other)
})
