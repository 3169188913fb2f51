import { Agent } from 'node:http'
import { RedisStore } from 'connect-redis'
import express from 'express'
import session from 'express-session'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { pino } from 'pino'
import { createClient } from 'redis'
import { finishLogin, startLogin } from './login.js'

/** A common stack: Express, express-session in Redis, http-proxy-middleware, and one log line per request. */
const { PORT, API_URL, REDIS_URL } = process.env
const log = pino({ base: null })
const app = express()
app.disable('x-powered-by')
app.set('etag', false)

app.use((request, response, next) => {
  const startedAt = performance.now()
  response.once('finish', () => {
    const { method, originalUrl: path } = request
    log.info({ method, path, status: response.statusCode, ms: performance.now() - startedAt }, 'request')
  })
  next()
})

const redis = await createClient({ url: REDIS_URL }).connect()
app.use(
  session({
    store: new RedisStore({ client: redis, prefix: 'express:' }),
    secret: 'bench-secret-of-thirty-two-bytes-or-more',
    resave: false,
    saveUninitialized: false,
    cookie: { httpOnly: true, sameSite: 'lax', maxAge: 1_800_000 },
  }),
)

app.get('/auth/login', async (request, response) => {
  const { pending, location } = await startLogin()
  request.session.pending = pending
  response.redirect(303, location)
})

app.get('/auth/callback', async (request, response) => {
  const accessToken = await finishLogin(request.originalUrl, request.session.pending)
  await new Promise((resolve, reject) => {
    request.session.regenerate((error) => (error ? reject(error) : resolve()))
  })
  request.session.accessToken = accessToken
  response.redirect(303, '/')
})

app.post('/auth/logout', async (request, response) => {
  await new Promise((resolve, reject) => {
    request.session.destroy((error) => (error ? reject(error) : resolve()))
  })
  response.status(204).end()
})

app.use(
  '/api',
  (request, response, next) => {
    if (request.session.accessToken === undefined) response.status(401).end()
    else next()
  },
  createProxyMiddleware({
    target: API_URL,
    agent: new Agent({ keepAlive: true, maxSockets: 512 }),
    on: {
      proxyReq: (proxied, request) => {
        proxied.removeHeader('cookie')
        proxied.setHeader('authorization', `Bearer ${request.session.accessToken}`)
      },
    },
  }),
)

app.listen(Number(PORT), '127.0.0.1')
