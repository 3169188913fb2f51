import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem, problemCodeOf } from '../problem.ts'
import { within } from '../time/within.ts'
import { html, page, renderPage, wantsPage, type Html } from './html.ts'
import { hasBody } from './well-formed.ts'

/** Longest wait for the rest of a refused upload. */
const UPLOAD_GRACE_MS = 1000

/** Headers of a file that could not be read. With them a browser would decode the problem as it would have decoded the file. */
const OF_FILES = ['accept-ranges', 'content-encoding', 'content-range', 'etag', 'last-modified'] as const

/** Sends a problem document (RFC 9457), or a page with the same facts for a navigation. */
export function sendProblem(request: FastifyRequest, reply: FastifyReply, problem: Problem): FastifyReply {
  for (const name of OF_FILES) reply.removeHeader(name)
  reply.code(problem.status).headers({ 'cache-control': 'no-store', ...problem.headers() })
  const body = renderProblem(request, reply, problem)
  // Closing during an upload resets the connection and loses the response. An untrusted connection may lose it.
  const isTrusted = reply.getHeader('connection') !== 'close'
  if (isTrusted && !reply.raw.shouldKeepAlive && isUploading(request.raw)) {
    // The rest of the upload is discarded meanwhile.
    const ended = once(request.raw.resume(), 'close').catch(() => undefined)
    void within(UPLOAD_GRACE_MS, ended).then(() => void reply.send(body))
    return reply
  }
  return reply.send(body)
}

function isUploading(request: IncomingMessage): boolean {
  return !request.complete && hasBody(request)
}

/** Sets the headers for the body of a problem, and returns the body: a page for a navigation, otherwise the document. */
function renderProblem(request: FastifyRequest, reply: FastifyReply, problem: Problem): Buffer | string | undefined {
  const body = wantsPage(request.headers.accept)
    ? renderPage(reply, problemPage(problem, request.id))
    : Buffer.from(problem.body(request.id))
  if (Buffer.isBuffer(body)) reply.header('content-type', 'application/problem+json')
  return request.method === 'HEAD' ? undefined : body
}

/**
 * `GET /problems/:code` explains a code. The `type` of every problem refers to it.
 * @param sendFile sends a file of the frontend below /problems, whatever its name; returns false if there is none
 */
export async function problemRoutes(
  fastify: FastifyInstance,
  { sendFile }: { readonly sendFile: (path: string, reply: FastifyReply) => boolean },
): Promise<void> {
  fastify.get('/problems/:code', (request, reply) => {
    const { code: text = '' } = request.params as { code?: string }
    if (!text.startsWith('.') && sendFile(`problems/${text}`, reply)) return
    const code = problemCodeOf(text)
    // Not reply.callNotFound(), which would answer a navigation with the frontend's own index.html.
    if (code === undefined) throw new Problem('not_found')
    const { advice } = new Problem(code)
    return reply
      .headers({ 'cache-control': 'no-cache', vary: 'Origin, Accept' })
      .send(renderProblem(request, reply, new Problem(code, { detail: advice })))
  })
}

/** A problem as a page: the facts of its document, and advice. */
export function problemPage({ code, status, title, message, advice, details }: Problem, requestId: string): Html {
  const { errors = [], outcome, loginUrl } = details
  const fields = errors.map(({ field, message: why }) => html`<li><code>${field}</code> ${why}</li>`)
  return page(
    title,
    html`${message === title || message === advice ? '' : html`<p>${message}</p>`}
      <p>${advice}</p>
      ${
        fields.length === 0
          ? ''
          : html`<ul>
              ${fields}
            </ul>`
      }
      ${loginUrl === undefined ? '' : html`<p><a href="${loginUrl}">Log in</a></p>`}
      <dl>
        ${fact('Code', code)} ${fact('Status', String(status))} ${outcome === undefined ? '' : fact('Outcome', outcome)}
        ${fact('Request', requestId)}
      </dl>`,
  )
}

function fact(name: string, value: string): Html {
  return html`<dt>${name}</dt>
    <dd>${value}</dd>`
}
