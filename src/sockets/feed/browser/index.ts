// The socket of a browser, and the upstream socket that it may have of its own.
export { Member } from './member.ts'
export type { MemberHost } from './outbox.ts'
export { OwnSocket } from './own-socket.ts'
