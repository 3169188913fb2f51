import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { AUDIT_EVENTS, auditBounded, type AuditFields } from '../telemetry/audit/audit.ts'
import { isOutOfDescriptors } from '../telemetry/descriptors.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import { activeSpan } from '../telemetry/traces/span.ts'
import { Problem } from '../problem.ts'
import { StoreUnavailable } from '../store/store.ts'
import { callerOnAccount, methodLabel, sourceOf } from './requester.ts'
import { sendProblem } from './problem-pages.ts'

type RefusalCode = AuditFields<'refused'>['code']

/** Problems that a legitimate page does not cause. */
const REFUSALS: readonly string[] = AUDIT_EVENTS.refused.required.code.enum

/** Responds with the problem that an error amounts to, and logs what the browser must not learn. */
export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // Its client has left, and the file that it was to get was closed: nothing has failed, and nobody is there.
  if (reply.raw.destroyed && (error as ForeignError).code === 'ERR_STREAM_PREMATURE_CLOSE') return reply.hijack()
  const problem = toProblem(error)
  const { code, status } = problem
  if (status >= 500) activeSpan().fail(code)
  if (code === 'internal_error' && !isOutOfDescriptors(error)) {
    request.log.error({ err: error, code }, 'request failed')
  } else if (status >= 500) logFailure(request.log, 'request failed', { code, status }, problem.cause)
  else if (isRefusal(code)) auditRefusal(request, code)
  return sendProblem(request, reply, problem)
}

function auditRefusal(request: FastifyRequest, code: RefusalCode): void {
  const { method, routeOptions } = request
  const route = routeOptions.url ?? 'unmatched'
  const fields = { code, method: methodLabel(method), route, ...callerOnAccount(request) }
  auditBounded(request.log, 'refused', fields, `${code}|${sourceOf(request)}`)
}

function isRefusal(code: string): code is RefusalCode {
  return REFUSALS.includes(code)
}

/** An error that Fastify or a plugin throws. */
type ForeignError = Partial<FastifyError> & { readonly headers?: Readonly<Record<string, string>> }

/** Turns any error into a problem that a browser may see. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (error instanceof StoreUnavailable) {
    return new Problem('session_store_unavailable', { retryAfterSeconds: 1, cause: error })
  }
  const { code, statusCode = 500, headers } = error as ForeignError
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new Problem('body_too_large', { cause: error })
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new Problem('unsupported_media_type', { cause: error })
  }
  if (statusCode === 416) {
    // RFC 9110 §15.5.17
    const contentRange = headers?.['Content-Range']
    return new Problem('bad_request', {
      status: 416,
      detail: 'The range that was asked for is beyond the end of the file.',
      ...(contentRange !== undefined && { headers: { 'content-range': contentRange } }),
    })
  }
  // @fastify/static serves no path such as `/a//b` and `/a/../b`. A server without files does not find them.
  if (statusCode === 403) return new Problem('not_found', { cause: error })
  if (statusCode >= 400 && statusCode < 500) return new Problem('bad_request', { cause: error })
  return new Problem('internal_error', { cause: error })
}
