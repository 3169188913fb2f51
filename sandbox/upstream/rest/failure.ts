/** The reason why a REST request fails. Each family of endpoints has its own format for it. */
export class Failure extends Error {
  readonly status: number
  readonly code: string
  /** The field of the request that is invalid. */
  readonly field: string | undefined
  constructor(status: number, code: string, message: string, field?: string) {
    super(message)
    this.name = 'Failure'
    this.status = status
    this.code = code
    this.field = field
  }
}

/** Converts any error. Those of the framework, such as a body that is too large, keep their status. */
export function failureFrom(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof Error && 'statusCode' in error && Number(error.statusCode) < 500)
    return new Failure(Number(error.statusCode), 'BadRequest', error.message)
  return new Failure(500, 'InternalServerError', 'The sandbox failed; see its log.')
}
