import type { FastifyInstance } from 'fastify'
import { renderPage, wantsPage } from '../http/html.ts'
import type { RawQuery } from '../http/server.ts'
import type { LoginDependencies } from './login-dependencies.ts'
import { announceLink, checkLink, linkDocument, linkPage } from './link-check.ts'
import { redirectorTo } from './other-name.ts'
import { startLogin } from './start-login.ts'

/** The routes that start a login or a sign-up, and those with which partners check their sign-up links. */
export async function loginRoutes(fastify: FastifyInstance, deps: LoginDependencies): Promise<void> {
  const { config, guard, metrics, attributionCookie, publicUrl } = deps
  const isRedirected = redirectorTo(publicUrl, guard)

  fastify.get<{ Querystring: RawQuery }>('/auth/login', async (request, reply) => {
    guard.requireNavigation(request)
    if (isRedirected(request, reply)) return reply
    return startLogin({ deps, request, reply, flow: 'login' })
  })

  fastify.get<{ Querystring: RawQuery }>('/auth/signup', async (request, reply) => {
    guard.requireNavigation(request)
    if (isRedirected(request, reply)) return reply
    const link = checkLink(request.query.text, config.frontendUrl)
    const { parameters, values, outcome, namesPartner } = link.reading
    // The guard admits no other destination, but also requests without the header, which come from scripts or old browsers.
    const isNavigation = request.headers['sec-fetch-dest'] === 'document'
    const by = isNavigation ? 'navigation' : 'fetch'
    metrics.attributionLinks.inc({ outcome, by })
    for (const note of new Set(parameters.flatMap(({ notes }) => notes))) metrics.attributionNotes.inc({ note, by })
    announceLink(reply, link)
    if (outcome === 'complete' && attributionCookie.enabled) {
      // Set even if the start fails below, so that the partner is not lost in an outage.
      const value = attributionCookie.value(values)
      reply.setCookie(attributionCookie.name, value, attributionCookie.attributes())
    }
    // The remembered link is used only if the request names no partner at all, not even misspelt; links are never merged.
    const remembered = namesPartner ? undefined : attributionCookie.read(request.headers.cookie)
    if (remembered !== undefined) reply.header('x-attribution', 'complete')
    const isComplete = remembered !== undefined || outcome === 'complete'
    return startLogin({ deps, request, reply, flow: 'signup', signup: { values: remembered ?? values, isComplete } })
  })

  // Partners can check a link with `curl -I`, which starts nothing.
  fastify.head<{ Querystring: RawQuery }>('/auth/signup', async (request, reply) => {
    const link = checkLink(request.query.text, config.frontendUrl)
    announceLink(reply, link)
    // Decoded, so that a wrong encoding is visible, and as JSON, because a value may contain any printable character.
    return reply.header('x-attribution-values', JSON.stringify(link.reading.values)).send()
  })

  fastify.get<{ Querystring: RawQuery }>('/auth/signup/check', async (request, reply) => {
    const link = checkLink(request.query.text, config.frontendUrl)
    announceLink(reply, link)
    return wantsPage(request.headers.accept) ? renderPage(reply, linkPage(link)) : linkDocument(link)
  })

  fastify.route<{ Querystring: RawQuery }>({
    method: ['GET', 'HEAD'],
    url: '/auth/signup/',
    handler: (request, reply) => {
      const { text } = request.query
      return reply.redirect(`/auth/signup${text === '' ? '' : `?${text}`}`, 308)
    },
  })
}
