import Fastify from 'fastify'

/** A minimal Fastify server: `PORT=… node hello.ts` */
const app = Fastify({ logger: true })
app.get('/', async () => ({ hello: 'world' }))
await app.listen({ port: Number(process.env['PORT']), host: '127.0.0.1' })
