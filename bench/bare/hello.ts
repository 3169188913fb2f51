import Fastify from 'fastify'

/** The least a Fastify server can be: `PORT=… node hello.ts` */
const app = Fastify({ logger: true })
app.get('/', async () => ({ hello: 'world' }))
await app.listen({ port: Number(process.env['PORT']), host: '127.0.0.1' })
