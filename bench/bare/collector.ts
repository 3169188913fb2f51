/** A collector of traces that reads and drops what it gets. `GET /` responds once it is ready. */
import { createServer } from 'node:http'

createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end())
}).listen(Number(process.env['PORT']), '127.0.0.1')
