export { createClient, type Client, type ClientOptions } from './create-client.ts'
export { createSession } from './session/session-follower.ts'
export { sessionKey } from './session/session-state.ts'
export type { SessionStore } from './session/session-store.ts'
export type { LogoutOptions, Session } from './session/session.ts'
export { once } from './api/once.ts'
export type { OnceOptions } from './api/order.ts'
export { ApiError, SocketError, type Problem, type SocketErrorCode } from './base/errors.ts'
export type { Api, ApiInit, ApiPath, ApiResponse, MorePaths, RequestBody, ResponseBody } from './api/api.ts'
export type * from './generated/bodies.ts'
export type * from './generated/messages.ts'
export type { CloseCode, CloseReason, ProblemCode, Requests, Responses } from './generated/catalog.ts'
export type { RequestOptions } from './sockets/exchange.ts'
export type { Message, SocketStatus } from './sockets/socket-status.ts'
export type { AuthError, AuthErrorCode, Flow, LoginOptions } from './session/login.ts'
export type { CallInit } from './api/call.ts'
export type { OrderSocket, SentOrder } from './base/order-shape.ts'
export type { ServerOptions } from './server.ts'
export type { ServerTime } from './base/server-clock.ts'
export type { ActiveSession, EndReason, Notice, OrdersPause, SessionState } from './session/session-state.ts'
export type * from './sockets/series-shape.ts'
export type { PublicSocket, TradingSocket } from './sockets/socket.ts'
export type {
  AnswerTo,
  Checked,
  Described,
  Operation,
  StreamOperation,
  Undescribed,
  UnknownMember,
  UnknownOperation,
} from './sockets/typed-messages.ts'

/** Put in by the build. */
declare const PACKAGE_VERSION: string
/** The version of the package, as in its package.json. */
export const version: string = PACKAGE_VERSION
