import fastifyCookie from '@fastify/cookie'
import fastifyHttpProxy from '@fastify/http-proxy'
import fastifySession from '@fastify/session'
import { RedisStore } from 'connect-redis'
import Fastify from 'fastify'
import { createClient } from 'redis'
import { finishLogin, startLogin } from './login.js'

/** A common stack on Fastify: @fastify/session in Redis on every route, @fastify/http-proxy. */
const { PORT, API_URL, REDIS_URL } = process.env
const app = Fastify({ logger: { base: null }, disableRequestLogging: true })

app.addHook('onResponse', async (request, reply) => {
  const { method, url: path } = request
  app.log.info({ method, path, status: reply.statusCode, ms: reply.elapsedTime }, 'request')
})

const redis = await createClient({ url: REDIS_URL }).connect()
await app.register(fastifyCookie)
await app.register(fastifySession, {
  store: new RedisStore({ client: redis, prefix: 'fastify:' }),
  secret: 'bench-secret-of-thirty-two-bytes-or-more',
  saveUninitialized: false,
  cookie: { httpOnly: true, sameSite: 'lax', secure: false, maxAge: 1_800_000 },
})

app.get('/auth/login', async (request, reply) => {
  const { pending, location } = await startLogin()
  request.session.pending = pending
  return reply.redirect(location, 303)
})

app.get('/auth/callback', async (request, reply) => {
  const accessToken = await finishLogin(request.url, request.session.pending)
  await request.session.regenerate()
  request.session.accessToken = accessToken
  return reply.redirect('/', 303)
})

app.post('/auth/logout', async (request, reply) => {
  await request.session.destroy()
  return reply.code(204).send()
})

await app.register(fastifyHttpProxy, {
  upstream: API_URL,
  prefix: '/api',
  undici: { connections: 512 },
  preHandler: (request, reply, next) => {
    if (request.session.accessToken === undefined) void reply.code(401).send()
    else next()
  },
  replyOptions: {
    rewriteRequestHeaders: (request, { cookie: _cookie, ...headers }) => ({
      ...headers,
      authorization: `Bearer ${request.session.accessToken}`,
    }),
  },
})

await app.listen({ port: Number(PORT), host: '127.0.0.1' })
